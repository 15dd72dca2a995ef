#include "model/position/sinusoidal.h"

#include <cmath>

namespace tupelo {

torch::Tensor sinusoidal_table(const torch::Tensor& positions, std::int64_t width,
                               SinusoidLayout layout) {
  TORCH_CHECK(width > 0 && width % 2 == 0, "sinusoid width ", width, " is not even");
  const std::int64_t half = width / 2;
  const double octaves = layout == SinusoidLayout::kTensor2Tensor ? static_cast<double>(half - 1)
                                                                  : static_cast<double>(half);
  const auto doubles = torch::TensorOptions().dtype(torch::kFloat64);
  torch::Tensor frequencies = torch::arange(half, doubles);
  frequencies.mul_(-std::log(10000.0) / octaves).exp_();
  const torch::Tensor angles =
      positions.to(torch::kCPU, torch::kFloat64).unsqueeze(1) * frequencies.unsqueeze(0);
  if (layout == SinusoidLayout::kInterleaved) {
    return torch::stack({angles.sin(), angles.cos()}, -1).flatten(1);
  }
  return torch::cat({angles.sin(), angles.cos()}, 1);
}

}  // namespace tupelo
