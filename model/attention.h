// The one attention of all layers and all position encodings.
//
//   result = sum over admissible keys of dropout(softmax(scores)) (v + offsets)
//
// with the scores of model/position/attention_terms.h. A query without any admissible key gets
// zeros. Half-precision inputs get a float32 softmax. The bias and its gradient never exist per
// sample: only the scores' own gradient is [B,N,T,T], its sum over the batch is what the bias
// receives.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "model/position/attention_terms.h"

namespace tupelo {

// query, key, value [B,N,T,D] ([B,N,T,2D], real parts first, with complex scores); admissible_keys
// [B,T] bool or undefined (all); dropout in [0,1), 0 outside training. Returns the shape of value.
// Differentiable with respect to query, key, value and every tensor of `terms`. The terms' rows
// (relative_rows) and convolution belong to the layer and are not looked at.
torch::Tensor attention(const torch::Tensor& query, const torch::Tensor& key,
                        const torch::Tensor& value, const AttentionTerms& terms,
                        const torch::Tensor& admissible_keys, double dropout);

// The kernel that a call takes.
enum class AttentionPath {
  kOwn,           // model/biased_attention.h
  kFused,         // LibTorch's scaled_dot_product_attention without mask
  kFusedBias,     // the same with the bias as mask; not cuDNN
  kFusedPadding,  // the same with padding as mask; not cuDNN
  kModulus        // plain operations, for the modulus of complex scores
};
std::string attention_path_name(AttentionPath path);

// Routing depends on the device, on what the terms have and on whether there is padding; never on
// what requires a gradient, so that a recomputed layer takes the path of the first time.
AttentionPath attention_path(at::DeviceType device, const AttentionTerms& terms, bool padding);

// What one call of attention() works on.
struct AttentionCall {
  const torch::Tensor& query;  // as handed in
  const torch::Tensor& key;
  const torch::Tensor& value;
  const AttentionTerms& terms;
  const torch::Tensor& admissible_keys;
};

// Looks on while a model computes. Packed rows make several calls per layer.
class AttentionObserver {
 public:
  virtual ~AttentionObserver() = default;
  virtual void enter_layer(std::int64_t layer) = 0;
  virtual void attend(const AttentionCall& call) = 0;
};

// [B,N,T,T] scores before masking, float32 or wider, by the plain formula; for reports and tests.
torch::Tensor attention_scores(const torch::Tensor& query, const torch::Tensor& key,
                               const AttentionTerms& terms, const torch::Tensor& admissible_keys);

}  // namespace tupelo
