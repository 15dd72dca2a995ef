// Attention with a bias shared by the batch, as an autograd function of our own.
#pragma once

#include <torch/types.h>

namespace tupelo {

// dropout(softmax(scale query key^T + bias)) value, [B,N,T,D], on any device, for query and key
// [B,N,T,X], value [B,N,T,D], bias [N,T,T] or undefined, admissible_keys [B,T] bool or undefined; a
// sample without any key gives zeros. Backward keeps the inputs and the probabilities [B,N,T,T],
// and sums the bias' gradient over the batch itself, so that no expanded bias or gradient of one
// ever exists. Softmax in float32 or wider.
torch::Tensor biased_attention(const torch::Tensor& query, const torch::Tensor& key,
                               const torch::Tensor& value, const torch::Tensor& bias,
                               const torch::Tensor& admissible_keys, double scale, double dropout);

}  // namespace tupelo
