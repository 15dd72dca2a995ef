#include "model/position/convolution_kernel.h"

#include <cmath>
#include <stdexcept>

#include "model/layers.h"

namespace tupelo {
namespace {

std::int64_t odd_kernel(const OptionReader& options) {
  const std::int64_t kernel = options.integer("kernel");
  if (kernel % 2 == 0) {
    throw std::invalid_argument("position encoding conv: option kernel=" + std::to_string(kernel) +
                                " is not valid; valid: an odd integer from 3 to 1023");
  }
  return kernel;
}

}  // namespace

std::vector<PositionOptionKind> ConvolutionKernel::options() {
  return {{"kernel",
           "3",
           {},
           "tokens that it sees",
           3,
           false,
           /*maximum=*/1023,
           "an odd integer from 3 to 1023"},
          {"depthwise", "false", {"true", "false"}, "every feature by itself"}};
}

ConvolutionKernel::ConvolutionKernel(torch::nn::Module& module, std::int64_t hidden_size,
                                     const OptionReader& options)
    : weight(module.register_parameter(
          "weight", torch::zeros({hidden_size, options.flag("depthwise") ? 1 : hidden_size,
                                  odd_kernel(options)}))),
      bias(module.register_parameter("bias", torch::zeros({hidden_size}))) {}

void ConvolutionKernel::initialize(const at::Generator& generator) {
  torch::NoGradGuard no_grad;
  const double inputs = static_cast<double>(weight.size(1) * weight.size(2));
  fill_normal(weight, 1.0 / std::sqrt(3.0 * inputs), generator);
  bias.zero_();
}

}  // namespace tupelo
