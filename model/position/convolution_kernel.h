// The weights of a border convolution, for the encodings made of one.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/position/option_reader.h"

namespace tupelo {

// Parameters: weight [H,H/groups,kernel], bias [H].
class ConvolutionKernel {
 public:
  static std::vector<PositionOptionKind> options();

  // Registers the parameters with `module`. Throws std::invalid_argument for an even kernel.
  ConvolutionKernel(torch::nn::Module& module, std::int64_t hidden_size,
                    const OptionReader& options);

  // Weights with the variance that torch gives its convolutions, 1 / (3 * inputs of an output): the
  // model's deviation would leave hardly anything of the signal. Bias 0.
  void initialize(const at::Generator& generator);

  torch::Tensor weight;
  torch::Tensor bias;
};

}  // namespace tupelo
