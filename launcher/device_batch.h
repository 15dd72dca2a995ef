// From a batch in host memory to the model's losses.
#pragma once

#include <optional>

#include "data/batch_stream.h"
#include "model/roberta.h"

namespace tupelo {

struct BatchLosses {
  MaskedLmOutput masked_lm;
  std::optional<SentenceOrderOutput> sentence_order;  // of a batch with sentence pairs
};

inline BatchLosses batch_losses(RobertaForMaskedLm& model, const Batch& batch,
                                torch::Device device) {
  const auto to_device = [&](const torch::Tensor& tensor) {
    return tensor.defined() ? tensor.to(device, /*non_blocking=*/true) : tensor;
  };
  const torch::Tensor input_ids = to_device(batch.input_ids);
  const TokenLayout layout = batch.documents.defined()
                                 ? TokenLayout::packed(batch.documents, device)
                                 : TokenLayout::rows(input_ids, to_device(batch.attention_mask));
  const torch::Tensor hidden = model.hidden_states(input_ids, layout);  // [B,T,H]
  BatchLosses losses;
  losses.masked_lm =
      model.masked_lm_loss_of(hidden, to_device(batch.masked_positions), to_device(batch.labels));
  if (batch.pair_rows.defined()) {
    losses.sentence_order = model.sentence_order_loss_of(hidden, to_device(batch.pair_rows),
                                                         to_device(batch.pair_labels));
  }
  return losses;
}

inline MaskedLmOutput masked_lm_loss(RobertaForMaskedLm& model, const Batch& batch,
                                     torch::Device device) {
  return batch_losses(model, batch, device).masked_lm;
}

}  // namespace tupelo
