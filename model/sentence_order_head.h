// From the first token of a row to whether its two segments were swapped.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>

#include "model/layers.h"

namespace tupelo {

// BERT's pooler: tanh(x W^T + b) of the hidden state of [CLS].
class Pooler : public torch::nn::Module {
 public:
  explicit Pooler(std::int64_t hidden_size);
  void initialize(double standard_deviation, std::uint64_t seed);

  // [P,H] for hidden states [P,H].
  torch::Tensor forward(const torch::Tensor& first_tokens) const;

 private:
  std::shared_ptr<Linear> dense_;
};

// Scores of the two orders: 0 as in the text, 1 swapped.
class SentenceOrderHead : public torch::nn::Module {
 public:
  explicit SentenceOrderHead(std::int64_t hidden_size);
  void initialize(double standard_deviation, std::uint64_t seed);

  // [P,2] for what the pooler makes of P rows, [P,H].
  torch::Tensor forward(const torch::Tensor& pooled) const;

 private:
  std::shared_ptr<Linear> classifier_;
};

}  // namespace tupelo
