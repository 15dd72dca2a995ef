#include "model/position/rotation_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <utility>

#include "model/position/spelling.h"

namespace tupelo {
namespace {

using Settings = RotationSettings;

std::vector<double> geometric(const Settings& settings, double base) {
  std::vector<double> radians;
  for (std::int64_t pair = 0; pair < settings.width / 2; ++pair) {
    radians.push_back(
        std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(settings.width)));
  }
  return radians;
}

std::vector<double> divided(std::vector<double> radians, double divisor) {
  for (double& value : radians) {
    value /= divisor;
  }
  return radians;
}

RotationFrequencies unscaled(const Settings& settings, std::int64_t) {
  return {geometric(settings, settings.base)};
}

RotationFrequencies interpolated(const Settings& settings, std::int64_t) {
  return {divided(geometric(settings, settings.base), settings.factor)};
}

// The base grows so that the slowest pair turns `stretch` times slower and the fastest as before.
RotationFrequencies with_larger_base(const Settings& settings, double stretch) {
  const auto width = static_cast<double>(settings.width);
  return {geometric(settings, settings.base * std::pow(stretch, width / (width - 2.0)))};
}

RotationFrequencies ntk(const Settings& settings, std::int64_t) {
  return with_larger_base(settings, settings.factor);
}

RotationFrequencies ntk_dynamic(const Settings& settings, std::int64_t tokens) {
  const double longer = static_cast<double>(std::max(tokens, settings.trained_length)) /
                        static_cast<double>(settings.trained_length);
  return with_larger_base(settings, settings.factor * longer - (settings.factor - 1.0));
}

RotationFrequencies ntk_fixed(const Settings& settings, std::int64_t) {
  const double slower = std::pow(settings.factor, 2.0 / static_cast<double>(settings.width));
  return {divided(geometric(settings, settings.base * settings.factor), slower)};
}

RotationFrequencies ntk_mixed(const Settings& settings, std::int64_t) {
  constexpr double kExponent = 0.625;
  RotationFrequencies frequencies{geometric(settings, settings.base)};
  const double strength =
      std::log(settings.factor) / std::pow(static_cast<double>(settings.width) / 2.0, kExponent);
  double pair = 1.0;
  for (double& value : frequencies.radians) {
    value *= std::exp(-strength * std::pow(pair++, kExponent));
  }
  return frequencies;
}

// Pairs that turn more than 32 times within the trained length stay, those that turn less than once
// are interpolated, a linear ramp lies between.
RotationFrequencies yarn_between(const Settings& settings, bool whole_pairs) {
  const auto width = static_cast<double>(settings.width);
  const auto pair_with_turns = [&](double turns) {
    return width *
           std::log(static_cast<double>(settings.trained_length) /
                    (2.0 * std::numbers::pi * turns)) /
           (2.0 * std::log(settings.base));
  };
  double first = pair_with_turns(32.0), last = pair_with_turns(1.0);
  if (whole_pairs) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  constexpr double kShortestRamp = 0.001;
  last = std::max(std::min(last, width - 1.0), first + kShortestRamp);

  RotationFrequencies frequencies{geometric(settings, settings.base)};
  double pair = 0.0;
  for (double& value : frequencies.radians) {
    const double ramp = std::clamp((pair++ - first) / (last - first), 0.0, 1.0);
    value = value / settings.factor * ramp + value * (1.0 - ramp);
  }
  frequencies.magnitude = 0.1 * std::log(settings.factor) + 1.0;
  return frequencies;
}

RotationFrequencies yarn(const Settings& settings, std::int64_t) {
  return yarn_between(settings, true);
}

RotationFrequencies yarn_notrunc(const Settings& settings, std::int64_t) {
  return yarn_between(settings, false);
}

using Scaling = RotationFrequencies (*)(const Settings&, std::int64_t);

const std::vector<std::pair<std::string, Scaling>>& scalings() {
  static const std::vector<std::pair<std::string, Scaling>> rows = {{"none", unscaled},
                                                                    {"pi", interpolated},
                                                                    {"ntk", ntk},
                                                                    {"ntk-dynamic", ntk_dynamic},
                                                                    {"ntk-fixed", ntk_fixed},
                                                                    {"ntk-mixed", ntk_mixed},
                                                                    {"yarn", yarn},
                                                                    {"yarn-notrunc", yarn_notrunc}};
  return rows;
}

}  // namespace

const std::vector<std::string>& rotation_scaling_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& row : scalings()) {
      list.push_back(row.first);
    }
    return list;
  }();
  return names;
}

RotationFrequencies rotation_frequencies(const RotationSettings& settings, std::int64_t tokens) {
  if (!(settings.factor >= 1.0)) {
    throw std::invalid_argument("rotation scaling " + settings.scaling + ": factor " +
                                std::to_string(settings.factor) +
                                " is not valid; it is at least 1");
  }
  for (const auto& [name, scaling] : scalings()) {
    if (name == settings.scaling) {
      return scaling(settings, tokens);
    }
  }
  throw std::invalid_argument("unknown rotation scaling '" + settings.scaling + "'" +
                              spelling_hint(settings.scaling, rotation_scaling_names()) +
                              "; valid: " + comma_separated(rotation_scaling_names()));
}

}  // namespace tupelo
