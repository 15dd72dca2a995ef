// From a batch in host memory to the model's loss.
#pragma once

#include "data/batch_stream.h"
#include "model/roberta.h"

namespace tupelo {

inline MaskedLmOutput masked_lm_loss(RobertaForMaskedLm& model, const Batch& batch,
                                     torch::Device device) {
  const auto to_device = [&](const torch::Tensor& tensor) {
    return tensor.defined() ? tensor.to(device, /*non_blocking=*/true) : tensor;
  };
  const torch::Tensor input_ids = to_device(batch.input_ids);
  const TokenLayout layout = batch.documents.defined()
                                 ? TokenLayout::packed(to_device(batch.documents))
                                 : TokenLayout::rows(input_ids, to_device(batch.attention_mask));
  return model.masked_lm_loss(input_ids, layout, to_device(batch.masked_positions),
                              to_device(batch.labels));
}

}  // namespace tupelo
