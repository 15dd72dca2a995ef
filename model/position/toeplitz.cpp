#include "model/position/toeplitz.h"

#include <torch/csrc/autograd/custom_function.h>

namespace tupelo {
namespace {

class Toeplitz : public torch::autograd::Function<Toeplitz> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& line) {
    const std::int64_t heads = line.size(0), width = line.size(1), tokens = (width + 1) / 2;
    // Row i of the view is the window of the line that starts at i: the Toeplitz matrix upside
    // down.
    return line.contiguous().as_strided({heads, tokens, tokens}, {width, 1, 1}).flip(1);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    const torch::Tensor& gradient = gradients[0];
    const std::int64_t heads = gradient.size(0), tokens = gradient.size(1), width = 2 * tokens - 1;
    // With T-1 zeros before each row, entry (i,j) lies at i * 2T + (j - i + T - 1): cut into rows
    // of 2T, equal distances share a column.
    const torch::Tensor padded = at::constant_pad_nd(gradient, {tokens - 1, 0}).flatten(1);
    const torch::Tensor sheared =
        at::constant_pad_nd(padded, {0, tokens}).view({heads, tokens, 2 * tokens});
    return {sheared.sum(1).narrow(1, 0, width)};
  }
};

}  // namespace

torch::Tensor toeplitz(const torch::Tensor& line) {
  TORCH_CHECK(line.dim() == 2 && line.size(1) % 2 == 1);
  return Toeplitz::apply(line);
}

}  // namespace tupelo
