#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "optim/optimizer.h"
#include "optim/slice_exchange.h"
#include "optim/sums_of_squares.h"

namespace tupelo {
namespace {

std::vector<at::Tensor> gradients_of(const std::vector<torch::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const torch::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

double global_norm(const std::vector<at::Tensor>& gradients, SliceExchange* exchange) {
  std::vector<double> sums = sums_of_squares(gradients);
  if (exchange != nullptr) sums = exchange->sum(std::move(sums));
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

}  // namespace

double clip_global_norm(const std::vector<torch::Tensor>& parameters, double max_norm,
                        SliceExchange* exchange) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = gradients_of(parameters);
  const double norm = global_norm(gradients, exchange);
  // An infinite norm would turn finite gradients into zeros; the caller is told and decides.
  if (max_norm <= 0 || !std::isfinite(norm)) return norm;
  const double scale = max_norm / (norm + 1e-6);
  if (scale < 1.0 && !gradients.empty()) at::_foreach_mul_(gradients, scale);
  return norm;
}

}  // namespace tupelo
