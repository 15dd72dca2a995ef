#include "model/position/cls_reset.h"

#include <torch/csrc/autograd/custom_function.h>

#include <optional>

namespace tupelo {
namespace {

// The two regions that the reset overwrites: row 0, and column 0 below it.
torch::Tensor first_row(const torch::Tensor& bias) { return bias.select(1, 0); }
torch::Tensor first_column(const torch::Tensor& bias) {
  return bias.select(2, 0).narrow(1, 1, bias.size(1) - 1);
}

class ResetCls : public torch::autograd::Function<ResetCls> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& bias,
                               const torch::Tensor& to_cls,
                               const std::optional<torch::Tensor>& from_cls) {
    context->saved_data["has_from_cls"] = from_cls.has_value();
    torch::Tensor result = bias.clone(at::MemoryFormat::Contiguous);
    first_column(result).copy_(to_cls.unsqueeze(1));
    if (from_cls) {
      first_row(result).copy_(from_cls->unsqueeze(1));
    } else {
      first_row(result).zero_();
    }
    return result;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const torch::Tensor& gradient = gradients[0];
    torch::Tensor inner = gradient.clone(at::MemoryFormat::Contiguous);
    first_row(inner).zero_();
    first_column(inner).zero_();
    const bool has_from_cls = context->saved_data["has_from_cls"].toBool();
    return {inner, first_column(gradient).sum(1),
            has_from_cls ? first_row(gradient).sum(1) : torch::Tensor()};
  }
};

}  // namespace

torch::Tensor reset_cls(const torch::Tensor& bias, const torch::Tensor& from_cls,
                        const torch::Tensor& to_cls) {
  return ResetCls::apply(
      bias, to_cls, from_cls.defined() ? std::optional<torch::Tensor>(from_cls) : std::nullopt);
}

torch::Tensor without_first_row(const torch::Tensor& rows) {
  return at::cat({at::zeros_like(rows.narrow(1, 0, 1)), rows.narrow(1, 1, rows.size(1) - 1)}, 1);
}

}  // namespace tupelo
