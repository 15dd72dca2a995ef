// From hidden states to scores of the vocabulary.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>

#include "model/layers.h"

namespace tupelo {

// Parameters: bias [V], dense, layer_norm. The decoder's matrix is the word table, handed in.
class MaskedLmHead : public torch::nn::Module {
 public:
  MaskedLmHead(std::int64_t hidden_size, std::int64_t vocab_size, double layer_norm_epsilon);
  void initialize(double standard_deviation, std::uint64_t seed);

  // LN(gelu(rows W_d + b_d)) word_table^T + bias, [M,V], for rows [M,H] and word_table [V,H].
  torch::Tensor forward(const torch::Tensor& rows, const torch::Tensor& word_table) const;

 private:
  torch::Tensor bias_;
  std::shared_ptr<Linear> dense_;
  std::shared_ptr<LayerNorm> norm_;
};

}  // namespace tupelo
