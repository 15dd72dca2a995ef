#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

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

constexpr std::int64_t kBlock = std::int64_t{1} << 16;
constexpr std::int64_t kLanes = 8;

// Several sums side by side, which the compiler turns into vector instructions.
template <typename Real>
double block_sum_of_squares(const Real* values, std::int64_t count) {
  std::array<double, kLanes> lanes = {};
  for (std::int64_t i = 0; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      lanes[static_cast<std::size_t>(lane)] += value * value;
    }
  }
  for (std::int64_t i = count / kLanes * kLanes; i < count; ++i) {
    const double value = values[i];
    lanes[static_cast<std::size_t>(i % kLanes)] += value * value;
  }
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

// Blocks of one size, added in their order: the number of threads changes no bit. ATen's norm with
// a float64 result takes seven times as long.
template <typename Real>
double sum_of_squares(const at::Tensor& gradient) {
  const at::Tensor dense = gradient.contiguous();
  const Real* values = dense.const_data_ptr<Real>();
  const std::int64_t count = dense.numel();
  std::vector<double> sums(static_cast<std::size_t>((count + kBlock - 1) / kBlock));
  at::parallel_for(0, static_cast<std::int64_t>(sums.size()), 1,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t block = first; block < last; ++block) {
                       const std::int64_t begin = block * kBlock;
                       sums[static_cast<std::size_t>(block)] =
                           block_sum_of_squares(values + begin, std::min(kBlock, count - begin));
                     }
                   });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

bool is_plain(const at::Tensor& gradient) {
  return gradient.is_cpu() &&
         (gradient.scalar_type() == at::kFloat || gradient.scalar_type() == at::kDouble);
}

double norm_on_host(const std::vector<at::Tensor>& gradients) {
  double sum = 0.0;
  for (const at::Tensor& gradient : gradients) {
    sum += gradient.scalar_type() == at::kFloat ? sum_of_squares<float>(gradient)
                                                : sum_of_squares<double>(gradient);
  }
  return std::sqrt(sum);
}

// One transfer from the device for all tensors.
double norm_on_device(const std::vector<at::Tensor>& gradients) {
  std::vector<at::Tensor> norms;
  for (const at::Tensor& gradient : gradients) {
    norms.push_back(at::linalg_vector_norm(gradient, 2, std::nullopt, false, at::kDouble)
                        .to(gradients.front().device()));
  }
  const at::Tensor on_host = at::stack(norms).to(at::kCPU);
  double sum = 0.0;
  for (std::int64_t i = 0; i < on_host.numel(); ++i) {
    const double norm = on_host.const_data_ptr<double>()[i];
    sum += norm * norm;
  }
  return std::sqrt(sum);
}

double global_norm(const std::vector<at::Tensor>& gradients) {
  const bool plain = std::all_of(gradients.begin(), gradients.end(), is_plain);
  return plain ? norm_on_host(gradients) : norm_on_device(gradients);
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
