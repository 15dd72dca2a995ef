// The one attention of all layers and all position encodings.
//
//   scores = scale * [(query_gain q + query_offset)(k + key_offset)^T
//                     + (query_extra_gain q + query_extra) key_extra^T] + bias
//   result = dropout(softmax over admissible keys of scores) v
//
// A query without any admissible key gets zeros. Half-precision inputs get a float32 softmax. The
// bias and its gradient never exist per sample: only the scores' own gradient is [B,N,T,T], its sum
// over the batch is what the bias receives.
#pragma once

#include <torch/types.h>

#include "model/position/position_encoding.h"

namespace tupelo {

// query, key, value [B,N,T,D]; terms as in model/position/position_encoding.h; admissible_keys
// [B,T] bool or undefined (all); dropout in [0,1), 0 outside training. Returns [B,N,T,D].
// Differentiable with respect to query, key, value and every tensor of `terms`.
torch::Tensor attention(const torch::Tensor& query, const torch::Tensor& key,
                        const torch::Tensor& value, const AttentionTerms& terms,
                        const torch::Tensor& admissible_keys, double dropout);

}  // namespace tupelo
