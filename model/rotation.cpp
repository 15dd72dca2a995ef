#include "model/rotation.h"

#include <torch/csrc/autograd/custom_function.h>

namespace tupelo {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor turned(const Tensor& features, const Tensor& cos, const Tensor& sin, bool interleaved) {
  const auto type = features.scalar_type();
  const auto wide = at::promote_types(type, at::kFloat);
  const std::int64_t half = features.size(-1) / 2;
  const Tensor pairs = interleaved ? features.to(wide).unflatten(-1, {half, 2})
                                   : features.to(wide).unflatten(-1, {2, half});
  const std::int64_t pair = interleaved ? -1 : -2;
  const Tensor first = pairs.select(pair, 0), second = pairs.select(pair, 1);  // [...,T,E/2]
  const Tensor c = cos.to(wide), s = sin.to(wide);
  return at::stack({first * c - second * s, first * s + second * c}, pair).flatten(-2).to(type);
}

class Rotate : public torch::autograd::Function<Rotate> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& features, const Tensor& cos,
                        const Tensor& sin, bool interleaved) {
    context->save_for_backward({cos, sin});
    context->saved_data["interleaved"] = interleaved;
    return turned(features, cos, sin, interleaved);
  }

  // The gradient is turned back.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const bool interleaved = context->saved_data["interleaved"].toBool();
    return {turned(gradients[0], saved[0], saved[1].neg(), interleaved), Tensor(), Tensor(),
            Tensor()};
  }
};

}  // namespace

Tensor rotate(const Tensor& features, const Tensor& cos, const Tensor& sin, RotationLayout layout) {
  TORCH_CHECK(features.size(-1) == 2 * cos.size(-1), "pairs of features and angles differ");
  return Rotate::apply(features, cos, sin, layout == RotationLayout::kInterleaved);
}

}  // namespace tupelo
