// Dropout without a stored mask: which elements survive is a hash of (seed, element index),
// evaluated once in forward and again in backward. Independent of the number of threads.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace tupelo {

// One draw: `probability` of dropping and the seed of the mask. The rate is rounded to a multiple
// of 2^-32 and survivors are scaled by the reciprocal of the rounded rate, so the expectation is
// exact.
struct DropoutMask {
  std::uint64_t seed = 0;
  double probability = 0.0;

  // Takes one 64-bit number from the default generator of the CPU.
  static DropoutMask draw(double probability);
  // input * mask / (1 - probability), element by element in memory order; not recorded by autograd.
  // CPU tensors, contiguous. `result` may be `input`.
  void apply(const torch::Tensor& input, torch::Tensor& result) const;
};

// Differentiable; the identity when probability is 0. On the CPU as above, elsewhere LibTorch's
// own. Draws from the default generator of the input's device.
torch::Tensor dropout(const torch::Tensor& input, double probability);

}  // namespace tupelo
