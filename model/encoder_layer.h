// One post-LN transformer layer.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "model/layers.h"
#include "model/position/position_encoding.h"
#include "model/self_attention.h"

namespace tupelo {

struct EncoderOptions;

// Parameters: attention.*, intermediate.dense, output.{dense,LayerNorm}.
class EncoderLayer : public torch::nn::Module {
 public:
  EncoderLayer(const EncoderOptions& options, const ContentBiases& biases);
  void initialize(double standard_deviation, const at::Generator& generator);

  // u = attention half of hidden; LN(u + dropout(gelu(u W_1 + b_1) W_2 + b_2)), gelu by the error
  // function. Arguments as in SelfAttention; a convolution among the terms comes first.
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& memory,
                        const AttentionTerms& terms, const TokenLayout& layout,
                        AttentionObserver* observer = nullptr) const;

  // The halves of forward, u and what becomes of it; each half's input enters nowhere else.
  torch::Tensor attention_half(const torch::Tensor& hidden, const torch::Tensor& memory,
                               const AttentionTerms& terms, const TokenLayout& layout,
                               AttentionObserver* observer = nullptr) const;
  torch::Tensor feed_forward_half(const torch::Tensor& attended) const;
  std::vector<torch::Tensor> attention_parameters() const;
  std::vector<torch::Tensor> feed_forward_parameters() const;

 private:
  double dropout_;
  std::shared_ptr<SelfAttention> attention_;
  std::shared_ptr<Linear> widening_;
  std::shared_ptr<Linear> narrowing_;
  std::shared_ptr<LayerNorm> norm_;
};

}  // namespace tupelo
