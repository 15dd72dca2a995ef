// From the terms of a position encoding to the operands of one product.
#pragma once

#include <torch/types.h>

#include "model/biased_attention.h"
#include "model/position/attention_terms.h"

namespace tupelo {

// query, key, value [B,N,T,D], rotated already. All of the terms but rotations and phase values:
// gains and offsets applied, extra and phase features appended, the temperature on every left
// factor.
AttentionOperands operands_of(const torch::Tensor& query, const torch::Tensor& key,
                              const torch::Tensor& value, const AttentionTerms& terms,
                              const torch::Tensor& admissible_keys);

// [B,N,T,D+E] of heads [B,N,T,D] and features that broadcast to [B,N,T,E].
torch::Tensor widen(const torch::Tensor& head, const torch::Tensor& extra);

// Factor on all products, [B,1,1,1] in the type of query, or undefined.
torch::Tensor length_temperature(const torch::Tensor& query, const AttentionTerms& terms,
                                 const torch::Tensor& admissible_keys);

}  // namespace tupelo
