// The attention half of a layer.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>

#include "model/layers.h"
#include "model/position/position_encoding.h"

namespace tupelo {

struct EncoderOptions;

// Parameters: self.{query,key,value}, output.{dense,LayerNorm}.
class SelfAttention : public torch::nn::Module {
 public:
  explicit SelfAttention(const EncoderOptions& options);
  void initialize(double standard_deviation, const at::Generator& generator);

  // LN(hidden + dropout(attention W_o + b_o)), [B,T,H], for hidden [B,T,H], the terms of this layer
  // and admissible_keys [B,T] bool or undefined (all).
  torch::Tensor forward(const torch::Tensor& hidden, const AttentionTerms& terms,
                        const torch::Tensor& admissible_keys) const;

 private:
  torch::Tensor split_heads(const torch::Tensor& projected) const;

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
