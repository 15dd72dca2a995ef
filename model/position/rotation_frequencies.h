// How fast the feature pairs of a rotation turn, and what stretches that to longer sequences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tupelo {

// none | pi | ntk | ntk-dynamic | ntk-fixed | ntk-mixed | yarn | yarn-notrunc
const std::vector<std::string>& rotation_scaling_names();

struct RotationSettings {
  std::int64_t width = 0;  // D, even
  double base = 10000.0;
  std::string scaling = "none";
  double factor = 1.0;              // s >= 1: sequences may get s times as long
  std::int64_t trained_length = 0;  // N0
};

struct RotationFrequencies {
  std::vector<double> radians;  // [D/2] per position
  double magnitude = 1.0;       // of cosines and sines
};

// For a sequence of `tokens` tokens: only ntk-dynamic depends on that. Formulas and papers:
// docs/positions.md. Throws std::invalid_argument for an unknown scaling, with the nearest name,
// and for a factor below 1.
RotationFrequencies rotation_frequencies(const RotationSettings& settings, std::int64_t tokens);

}  // namespace tupelo
