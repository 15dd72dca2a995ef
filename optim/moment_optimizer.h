// What the optimizers of Adam's family share: two moments of every parameter's gradient.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "optim/optimizer.h"

namespace tupelo {

// Tensors side by side that one call updates: same device, dtype and settings. Never empty.
struct MomentBatch {
  std::vector<torch::Tensor> parameters, gradients, exp_avgs;
  std::vector<torch::Tensor> exp_avg_sqs;  // empty in groups without second moments
  std::vector<const NamedParameter*> named;
};

// Of a group in one step.
struct MomentRates {
  double learning_rate;
  double weight_decay;
  std::int64_t update;  // t, counts from 1
  bool hidden_matrices;
};

// State: "exp_avg.<parameter>" (first moment) and, where the group keeps one,
// "exp_avg_sq.<parameter>" (second moment), shaped and typed like the parameter.
class MomentOptimizer : public Optimizer {
 public:
  void step(double learning_rate, std::int64_t step) final;
  std::vector<std::pair<std::string, torch::Tensor>> state() final;
  void load_state(const std::vector<std::pair<std::string, torch::Tensor>>& state) final;
  const std::vector<ParameterGroup>& groups() const final { return groups_; }

 protected:
  using KeepsSecondMoment = bool (*)(const ParameterGroup&);

  // Throws std::invalid_argument when an option is out of range.
  MomentOptimizer(
      OptimizerOptions options, std::vector<ParameterGroup> groups, SliceExchange* exchange,
      KeepsSecondMoment keeps_second = [](const ParameterGroup&) { return true; });

  const OptimizerOptions& options() const { return options_; }
  // None when parameters are whole.
  SliceExchange* exchange() const { return exchange_; }
  // Of each whole tensor of which this rank has `parts`, or all.
  std::vector<double> whole_sums_of_squares(const std::vector<torch::Tensor>& parts) const;

 private:
  struct Moments {
    torch::Tensor exp_avg;
    torch::Tensor exp_avg_sq;  // undefined where there is none
  };

  // The update rule: changes parameters and moments in place, without gradient tracking.
  virtual void apply(const MomentBatch& batch, const MomentRates& rates) const = 0;

  void check_options() const;
  void require(bool holds, const std::string& what, double value) const;
  void add_state(const ParameterGroup& group, bool second_moment);
  void update(const ParameterGroup& group, const MomentRates& rates) const;

  OptimizerOptions options_;
  std::vector<ParameterGroup> groups_;
  SliceExchange* exchange_;
  std::map<std::string, Moments> moments_;
};

}  // namespace tupelo
