#include "optim/moment_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <set>
#include <stdexcept>

#include "optim/slice_exchange.h"
#include "optim/sums_of_squares.h"

namespace tupelo {
namespace {

bool alike(const at::Tensor& left, const at::Tensor& right) {
  return left.device() == right.device() && left.scalar_type() == right.scalar_type();
}

void check_state(const std::map<std::string, torch::Tensor>& own,
                 const std::vector<std::pair<std::string, torch::Tensor>>& state) {
  std::set<std::string> seen;
  for (const auto& [name, tensor] : state) {
    const auto found = own.find(name);
    if (found == own.end()) {
      throw std::invalid_argument("optimizer state '" + name + "' belongs to no parameter");
    }
    if (!seen.insert(name).second) {
      throw std::invalid_argument("optimizer state '" + name + "' is given twice");
    }
    if (tensor.sizes() != found->second.sizes() ||
        tensor.scalar_type() != found->second.scalar_type()) {
      throw std::invalid_argument(c10::str("optimizer state '", name, "' is ", tensor.scalar_type(),
                                           tensor.sizes(), ", but its parameter needs ",
                                           found->second.scalar_type(), found->second.sizes()));
    }
  }
  for (const auto& [name, tensor] : own) {
    if (seen.count(name) == 0) {
      throw std::invalid_argument("optimizer state '" + name + "' is missing");
    }
  }
}

}  // namespace

MomentOptimizer::MomentOptimizer(OptimizerOptions options, std::vector<ParameterGroup> groups,
                                 SliceExchange* exchange, KeepsSecondMoment keeps_second)
    : options_(std::move(options)), groups_(std::move(groups)), exchange_(exchange) {
  check_options();
  for (const ParameterGroup& group : groups_) add_state(group, keeps_second(group));
}

void MomentOptimizer::step(double learning_rate, std::int64_t step) {
  TORCH_CHECK(step >= 1, "steps count from 1, got ", step);
  const at::NoGradGuard no_grad;
  for (const ParameterGroup& group : groups_) {
    if (step <= group.frozen_until_step) continue;
    update(group, {learning_rate * group.learning_rate_multiplier, group.weight_decay,
                   step - group.frozen_until_step, group.hidden_matrices});
  }
}

std::vector<std::pair<std::string, torch::Tensor>> MomentOptimizer::state() {
  std::vector<std::pair<std::string, torch::Tensor>> named;
  for (const ParameterGroup& group : groups_) {
    for (const NamedParameter& parameter : group.parameters) {
      const Moments& moments = moments_.at(parameter.name);
      named.emplace_back("exp_avg." + parameter.name, moments.exp_avg);
      if (moments.exp_avg_sq.defined()) {
        named.emplace_back("exp_avg_sq." + parameter.name, moments.exp_avg_sq);
      }
    }
  }
  return named;
}

void MomentOptimizer::load_state(const std::vector<std::pair<std::string, torch::Tensor>>& state) {
  std::map<std::string, torch::Tensor> own;
  for (const auto& [name, tensor] : this->state()) own.emplace(name, tensor);
  check_state(own, state);
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : state) own.at(name).copy_(tensor);
}

std::vector<double> MomentOptimizer::whole_sums_of_squares(
    const std::vector<torch::Tensor>& parts) const {
  const std::vector<double> sums = sums_of_squares(parts);
  return exchange_ == nullptr ? sums : exchange_->sum(sums);
}

void MomentOptimizer::require(bool holds, const std::string& what, double value) const {
  if (!holds) {
    throw std::invalid_argument(options_.name + ": " + what + ", got " + std::to_string(value));
  }
}

void MomentOptimizer::check_options() const {
  require(options_.beta1 >= 0 && options_.beta1 < 1, "beta1 must be in [0, 1)", options_.beta1);
  require(options_.beta2 >= 0 && options_.beta2 < 1, "beta2 must be in [0, 1)", options_.beta2);
  require(options_.momentum >= 0 && options_.momentum < 1, "momentum must be in [0, 1)",
          options_.momentum);
  require(options_.epsilon > 0 && std::isfinite(options_.epsilon), "epsilon must be above 0",
          options_.epsilon);
  for (const ParameterGroup& group : groups_) {
    require(group.weight_decay >= 0 && std::isfinite(group.weight_decay),
            "weight decay of group '" + group.name + "' must not be negative", group.weight_decay);
    require(group.learning_rate_multiplier >= 0 && std::isfinite(group.learning_rate_multiplier),
            "learning-rate multiplier of group '" + group.name + "' must not be negative",
            group.learning_rate_multiplier);
    require(group.frozen_until_step >= 0,
            "frozen steps of group '" + group.name + "' must not be negative",
            static_cast<double>(group.frozen_until_step));
  }
}

void MomentOptimizer::add_state(const ParameterGroup& group, bool second_moment) {
  for (const NamedParameter& parameter : group.parameters) {
    TORCH_CHECK(parameter.tensor.defined() && parameter.tensor.is_contiguous(), "parameter '",
                parameter.name, "' is not a contiguous tensor");
    const at::Tensor like = parameter.tensor.detach();
    Moments moments{at::zeros_like(like), {}};
    if (second_moment) moments.exp_avg_sq = at::zeros_like(like);
    const bool added = moments_.emplace(parameter.name, std::move(moments)).second;
    TORCH_CHECK(added, "two parameters are called '", parameter.name, "'");
  }
}

void MomentOptimizer::update(const ParameterGroup& group, const MomentRates& rates) const {
  MomentBatch batch;
  for (const NamedParameter& parameter : group.parameters) {
    const at::Tensor& gradient = parameter.tensor.grad();
    TORCH_CHECK(gradient.defined() || exchange_ == nullptr, "slice of '", parameter.name,
                "' without a gradient, which another rank may have");
    if (!gradient.defined()) continue;
    if (!batch.parameters.empty() && !alike(batch.parameters.front(), parameter.tensor)) {
      apply(batch, rates);
      batch = MomentBatch();
    }
    const Moments& moments = moments_.at(parameter.name);
    batch.parameters.push_back(parameter.tensor);
    batch.gradients.push_back(gradient.contiguous());
    batch.exp_avgs.push_back(moments.exp_avg);
    batch.named.push_back(&parameter);
    if (moments.exp_avg_sq.defined()) batch.exp_avg_sqs.push_back(moments.exp_avg_sq);
  }
  if (!batch.parameters.empty()) apply(batch, rates);
}

}  // namespace tupelo
