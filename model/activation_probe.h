// Predicts what a training step keeps for backward, by running small pieces of the model.
#pragma once

#include <cstdint>

#include "model/activation_profile.h"
#include "model/roberta.h"

namespace tupelo {

// A micro-batch.
struct ActivationShape {
  std::int64_t rows = 0;    // B
  std::int64_t tokens = 0;  // T, of every row
  std::int64_t masked = 0;  // M, masked tokens of all rows
  std::int64_t pairs = 0;   // rows with a sentence-order label; of a model with that head
  bool padding = false;     // some rows have it
  bool packed = false;      // documents share rows; predicted as rows of one document each
};

// What the model keeps in training mode for such a micro-batch, on its device and in its type.
//
// Nothing that a layer does mixes rows, so bytes are a constant plus a multiple of the rows. Both
// follow from each part by itself, one layer of each group, at two rows and at three (fewer when
// the micro-batch has fewer): the prediction costs a few forward passes of single layers, never the
// memory of the batch. Draws from the default generators, and puts their states back; touches no
// gradient. Throws std::invalid_argument for more tokens than model.longest().
ActivationProfile profile_activations(RobertaForMaskedLm& model, const ActivationShape& shape);

}  // namespace tupelo
