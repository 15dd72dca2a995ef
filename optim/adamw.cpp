#include "optim/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "optim/unknown_name.h"

namespace tupelo {
namespace {

enum class Flavour { kTorch, kFairseq };

Flavour parse_flavour(const std::string& name) {
  if (name == "torch") return Flavour::kTorch;
  if (name == "fairseq") return Flavour::kFairseq;
  throw std::invalid_argument(unknown_name("AdamW flavour", name, {"torch", "fairseq"}));
}

void require(bool holds, const std::string& what, double value) {
  if (!holds) {
    throw std::invalid_argument("AdamW: " + what + ", got " + std::to_string(value));
  }
}

// Tensors that one kernel call updates: same device, dtype and settings.
struct Batch {
  std::vector<at::Tensor> parameters, gradients, exp_avgs, exp_avg_sqs;

  bool accepts(const at::Tensor& parameter) const {
    return parameters.empty() || (parameters.front().device() == parameter.device() &&
                                  parameters.front().scalar_type() == parameter.scalar_type());
  }
};

struct Rates {
  double learning_rate;
  double weight_decay;
  std::int64_t update;  // t, counts from 1
};

class AdamW final : public Optimizer {
 public:
  AdamW(const OptimizerOptions& options, std::vector<ParameterGroup> groups)
      : options_(options), flavour_(parse_flavour(options.flavour)), groups_(std::move(groups)) {
    check_options();
    for (const ParameterGroup& group : groups_) add_state(group);
  }

  void step(double learning_rate, std::int64_t step) override {
    TORCH_CHECK(step >= 1, "steps count from 1, got ", step);
    const at::NoGradGuard no_grad;
    for (const ParameterGroup& group : groups_) {
      if (step <= group.frozen_until_step) continue;
      update(group, {learning_rate * group.learning_rate_multiplier, group.weight_decay,
                     step - group.frozen_until_step});
    }
  }

  std::vector<std::pair<std::string, torch::Tensor>> state() override {
    std::vector<std::pair<std::string, torch::Tensor>> named;
    for (const ParameterGroup& group : groups_) {
      for (const NamedParameter& parameter : group.parameters) {
        const Moments& moments = moments_.at(parameter.name);
        named.emplace_back("exp_avg." + parameter.name, moments.exp_avg);
        named.emplace_back("exp_avg_sq." + parameter.name, moments.exp_avg_sq);
      }
    }
    return named;
  }

  void load_state(const std::vector<std::pair<std::string, torch::Tensor>>& state) override {
    std::map<std::string, torch::Tensor> own;
    for (const auto& [name, tensor] : this->state()) own.emplace(name, tensor);
    check_state(own, state);
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : state) own.at(name).copy_(tensor);
  }

  const std::vector<ParameterGroup>& groups() const override { return groups_; }

 private:
  struct Moments {
    at::Tensor exp_avg, exp_avg_sq;
  };

  void check_options() const {
    require(options_.beta1 >= 0 && options_.beta1 < 1, "beta1 must be in [0, 1)", options_.beta1);
    require(options_.beta2 >= 0 && options_.beta2 < 1, "beta2 must be in [0, 1)", options_.beta2);
    require(options_.epsilon > 0 && std::isfinite(options_.epsilon), "epsilon must be above 0",
            options_.epsilon);
    for (const ParameterGroup& group : groups_) {
      require(group.weight_decay >= 0 && std::isfinite(group.weight_decay),
              "weight decay of group '" + group.name + "' must not be negative",
              group.weight_decay);
      require(group.learning_rate_multiplier >= 0 && std::isfinite(group.learning_rate_multiplier),
              "learning-rate multiplier of group '" + group.name + "' must not be negative",
              group.learning_rate_multiplier);
      require(group.frozen_until_step >= 0,
              "frozen steps of group '" + group.name + "' must not be negative",
              static_cast<double>(group.frozen_until_step));
    }
  }

  void add_state(const ParameterGroup& group) {
    for (const NamedParameter& parameter : group.parameters) {
      TORCH_CHECK(parameter.tensor.defined() && parameter.tensor.is_contiguous(), "parameter '",
                  parameter.name, "' is not a contiguous tensor");
      const at::Tensor like = parameter.tensor.detach();
      const bool added =
          moments_.emplace(parameter.name, Moments{at::zeros_like(like), at::zeros_like(like)})
              .second;
      TORCH_CHECK(added, "two parameters are called '", parameter.name, "'");
    }
  }

  void update(const ParameterGroup& group, const Rates& rates) {
    Batch batch;
    for (const NamedParameter& parameter : group.parameters) {
      const at::Tensor& gradient = parameter.tensor.grad();
      if (!gradient.defined()) continue;
      if (!batch.accepts(parameter.tensor)) {
        apply(batch, rates);
        batch = Batch();
      }
      const Moments& moments = moments_.at(parameter.name);
      batch.parameters.push_back(parameter.tensor);
      batch.gradients.push_back(gradient.contiguous());
      batch.exp_avgs.push_back(moments.exp_avg);
      batch.exp_avg_sqs.push_back(moments.exp_avg_sq);
    }
    if (!batch.parameters.empty()) apply(batch, rates);
  }

  void apply(const Batch& batch, const Rates& rates) const {
    // fairseq's update is torch's with epsilon / sqrt(1 - beta2^t): multiply its numerator and
    // denominator by 1 / sqrt(1 - beta2^t). So one kernel serves both.
    const double correction2 =
        std::sqrt(1 - std::pow(options_.beta2, static_cast<double>(rates.update)));
    const double epsilon =
        flavour_ == Flavour::kFairseq ? options_.epsilon / correction2 : options_.epsilon;
    const at::Tensor update = at::full({}, static_cast<double>(rates.update),
                                       batch.parameters.front().options().dtype(at::kFloat));
    const std::vector<at::Tensor> updates(batch.parameters.size(), update);
    at::_fused_adamw_(batch.parameters, batch.gradients, batch.exp_avgs, batch.exp_avg_sqs,
                      /*max_exp_avg_sqs=*/{}, updates, rates.learning_rate, options_.beta1,
                      options_.beta2, rates.weight_decay, epsilon, /*amsgrad=*/false,
                      /*maximize=*/false);
  }

  static void check_state(const std::map<std::string, torch::Tensor>& own,
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
        throw std::invalid_argument(c10::str(
            "optimizer state '", name, "' is ", tensor.scalar_type(), tensor.sizes(),
            ", but its parameter needs ", found->second.scalar_type(), found->second.sizes()));
      }
    }
    for (const auto& [name, tensor] : own) {
      if (seen.count(name) == 0) {
        throw std::invalid_argument("optimizer state '" + name + "' is missing");
      }
    }
  }

  OptimizerOptions options_;
  Flavour flavour_;
  std::vector<ParameterGroup> groups_;
  std::map<std::string, Moments> moments_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const OptimizerOptions& options,
                                      std::vector<ParameterGroup> groups) {
  return std::make_unique<AdamW>(options, std::move(groups));
}

}  // namespace tupelo
