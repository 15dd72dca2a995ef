// Which parameters decay, and which belong to position encodings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace tupelo {

// Full names of parameters by treatment.
struct ParameterGroupNames {
  std::vector<std::string> decayed;
  std::vector<std::string> undecayed;
  std::vector<std::string> position_decayed;
  std::vector<std::string> position_undecayed;
};

struct ParameterGroupOptions {
  double weight_decay = 0.01;
  double position_weight_decay = 0.01;
  double position_learning_rate_multiplier = 1.0;
  std::int64_t position_frozen_steps = 0;  // position groups stand still in the first so many steps
};

// The groups "decayed", "undecayed", "position_decayed" and "position_undecayed", in this order,
// each present even when empty, with parameters in the order of `parameters`. Names match exactly.
// Throws std::invalid_argument that names a parameter which is in no list or in two, and a listed
// name that no parameter has.
std::vector<ParameterGroup> make_parameter_groups(const std::vector<NamedParameter>& parameters,
                                                  const ParameterGroupNames& names,
                                                  const ParameterGroupOptions& options);

}  // namespace tupelo
