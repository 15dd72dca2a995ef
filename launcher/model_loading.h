// Puts the tensors of a checkpoint into a model.
#pragma once

#include "checkpoints/safetensors.h"
#include "model/roberta.h"

namespace tupelo {

// Copies every tensor into the parameter of the same name. Throws std::invalid_argument, before
// anything changes, when a name is missing on either side or a shape differs.
void load_parameters(RobertaForMaskedLm& model, const NamedTensors& tensors);

}  // namespace tupelo
