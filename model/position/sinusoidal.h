// Sinusoidal position tables.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace tupelo {

enum class SinusoidLayout {
  kInterleaved,   // [p,2m] = sin(p * 10000^(-2m/width)), [p,2m+1] = cos of the same
  kConcat,        // all sines, then all cosines, same frequencies
  kTensor2Tensor  // as kConcat with frequencies 10000^(-m/(width/2-1)), m < width/2
};

// [P,width] float64 on the CPU for positions [P] int64. `width` even, and > 2 for kTensor2Tensor.
torch::Tensor sinusoidal_table(const torch::Tensor& positions, std::int64_t width,
                               SinusoidLayout layout);

}  // namespace tupelo
