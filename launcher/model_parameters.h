// A model's parameters, sorted for the optimizer.
#pragma once

#include <vector>

#include "launcher/run_config.h"
#include "model/roberta.h"
#include "optim/optimizer.h"

namespace tupelo {

// Groups by weight decay and, for position parameters, by learning-rate multiplier: the configured
// one, or with "auto" what each encoding recommends. Position parameters stand still in the first
// `position_frozen_steps` steps. Groups may be empty. Throws std::invalid_argument for settings of
// position parameters when the model has none.
std::vector<ParameterGroup> parameter_groups(const RobertaForMaskedLm& model,
                                             const UpdateOptions& options,
                                             std::int64_t position_frozen_steps);

}  // namespace tupelo
