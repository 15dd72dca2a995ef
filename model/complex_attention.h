// Attention by the modulus of complex scores (Wang et al., "Encoding Word Order in Complex
// Embeddings", ICLR 2020, as released).
#pragma once

#include <torch/types.h>

namespace tupelo {

// scale |q k^T|, without conjugation, [B,N,T,T] in float32 or wider, for query and key [B,N,T,2D],
// real parts first.
torch::Tensor modulus_scores(const torch::Tensor& query, const torch::Tensor& key, double scale);

// dropout(softmax(scores)) value with real and imaginary parts [B,N,T,2D] on the same
// probabilities; admissible_keys [B,T] bool or undefined. Samples without a key give zeros.
torch::Tensor modulus_attention(torch::Tensor scores, const torch::Tensor& value,
                                const torch::Tensor& admissible_keys, double dropout_probability);

}  // namespace tupelo
