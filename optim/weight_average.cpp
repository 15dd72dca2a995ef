#include "optim/weight_average.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>

#include <algorithm>
#include <cstddef>

namespace tupelo {

WeightAverage::WeightAverage(std::vector<NamedParameter> parameters, double decay) : decay_(decay) {
  TORCH_CHECK(decay > 0 && decay < 1, "an average's decay is in (0, 1), got ", decay);
  for (NamedParameter& parameter : parameters) {
    names_.push_back(std::move(parameter.name));
    weights_.push_back(parameter.tensor.detach());
    averages_.push_back(weights_.back().clone());
  }
}

void WeightAverage::update() {
  const at::NoGradGuard no_grad;
  const auto n = static_cast<double>(updates_++);
  if (weights_.empty()) return;
  at::_foreach_lerp_(averages_, weights_, 1 - std::min(decay_, (1 + n) / (10 + n)));
}

void WeightAverage::restart() {
  const at::NoGradGuard no_grad;
  updates_ = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) averages_[i].copy_(weights_[i]);
}

std::vector<std::pair<std::string, torch::Tensor>> WeightAverage::tensors() const {
  std::vector<std::pair<std::string, torch::Tensor>> named;
  for (std::size_t i = 0; i < names_.size(); ++i) named.emplace_back(names_[i], averages_[i]);
  return named;
}

void WeightAverage::swap() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const torch::Tensor weight = weights_[i].clone();
    weights_[i].copy_(averages_[i]);
    averages_[i].copy_(weight);
  }
}

}  // namespace tupelo
