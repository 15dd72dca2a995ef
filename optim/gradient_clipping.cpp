#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <cmath>

#include "optim/optimizer.h"

namespace tupelo {
namespace {

std::vector<at::Tensor> gradients_of(const std::vector<torch::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const torch::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

// One transfer from the device for all tensors; the sum over tensors runs in list order.
double global_norm(const std::vector<at::Tensor>& gradients) {
  if (gradients.empty()) return 0.0;
  std::vector<at::Tensor> norms;
  for (const at::Tensor& gradient : gradients) {
    norms.push_back(at::linalg_vector_norm(gradient, 2, std::nullopt, false, at::kDouble)
                        .to(gradients.front().device()));
  }
  const at::Tensor on_host = at::stack(norms).to(at::kCPU);
  double sum_of_squares = 0.0;
  for (std::int64_t i = 0; i < on_host.numel(); ++i) {
    const double norm = on_host.const_data_ptr<double>()[i];
    sum_of_squares += norm * norm;
  }
  return std::sqrt(sum_of_squares);
}

}  // namespace

double clip_global_norm(const std::vector<torch::Tensor>& parameters, double max_norm) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = gradients_of(parameters);
  const double norm = global_norm(gradients);
  // An infinite norm would turn finite gradients into zeros; the caller is told and decides.
  if (max_norm <= 0 || !std::isfinite(norm)) return norm;
  const double scale = max_norm / (norm + 1e-6);
  if (scale < 1.0) {
    for (const at::Tensor& gradient : gradients) gradient.mul_(scale);
  }
  return norm;
}

}  // namespace tupelo
