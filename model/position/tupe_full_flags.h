// The switches of tupe-full.
#pragma once

#include <vector>

#include "model/position/option_reader.h"

namespace tupelo {

struct TupeFullFlags {
  static std::vector<PositionOptionKind> options();
  // Throws std::invalid_argument for options that do not fit together.
  explicit TupeFullFlags(const OptionReader& reader);

  bool bias, dot;  // what pp asks for
  bool joint_scale;
  bool temperatures, shared_temperatures, content_temperature;
  bool untie_cls;
  bool sinusoidal, zero_bias;  // first values
  bool concatenate;
};

}  // namespace tupelo
