// The attention half of a layer.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "model/attention.h"
#include "model/layers.h"
#include "model/position/position_encoding.h"
#include "model/token_layout.h"

namespace tupelo {

struct EncoderOptions;

// Parameters: self.{query,key,value}, output.{dense,LayerNorm}.
class SelfAttention : public torch::nn::Module {
 public:
  SelfAttention(const EncoderOptions& options, const ContentBiases& biases);
  void initialize(double standard_deviation, const at::Generator& generator);

  // LN(hidden + dropout(attention W_o + b_o)), [B,T,H], for hidden [B,T,H] ([2B,T,H] with complex
  // scores) and the terms of this layer. Keys and values come from `memory` [B,T,H] when that is
  // defined. `observer` may be nullptr.
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& memory,
                        const AttentionTerms& terms, const TokenLayout& layout,
                        AttentionObserver* observer) const;

 private:
  torch::Tensor split_heads(const torch::Tensor& projected) const;
  torch::Tensor merge_heads(const torch::Tensor& heads, bool complex) const;
  using Map = std::function<torch::Tensor(const torch::Tensor&)>;
  AttentionTerms with_projected_rows(AttentionTerms terms, const Map& key_map,
                                     const Map& query_map) const;

  std::int64_t heads_;
  double dropout_;
  double attention_dropout_;
  std::shared_ptr<Linear> query_;
  std::shared_ptr<Linear> key_;
  std::shared_ptr<Linear> value_;
  std::shared_ptr<Linear> dense_;
  std::shared_ptr<LayerNorm> norm_;
};

}  // namespace tupelo
