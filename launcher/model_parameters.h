// A model's parameters, sorted for the optimizer.
#pragma once

#include <vector>

#include "launcher/run_config.h"
#include "model/roberta.h"
#include "optim/optimizer.h"

namespace tupelo {

// All of them, by their full names.
std::vector<NamedParameter> named_parameters(const RobertaForMaskedLm& model);

// Groups by weight decay and learning-rate multiplier, none empty. Multipliers are products: of
// position parameters the configured one, or with "auto" what each encoding recommends; with
// options.layer_decay d, d^k for a parameter k levels below the heads (the last layer is at 1, the
// embeddings one below the first layer; position encodings are at the first layer they serve: the
// convention of BEiT, arXiv 2106.08254); with an optimizer of matrices, of all others
// options.adamw_learning_rate over the schedule's peak. Hidden matrices, for such an optimizer, are
// those of the layers; position parameters are none. Position parameters stand still in the first
// `position_frozen_steps` steps. Throws std::invalid_argument for settings of position parameters
// when the model has none.
std::vector<ParameterGroup> parameter_groups(const RobertaForMaskedLm& model,
                                             const UpdateOptions& options,
                                             std::int64_t position_frozen_steps);

}  // namespace tupelo
