// What the optimizers of Adam's family share: two moments of every parameter's gradient.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "optim/optimizer.h"

namespace tupelo {

// State: "exp_avg.<parameter>" (first moment) and "exp_avg_sq.<parameter>" (second moment), shaped
// and typed like the parameter.
class MomentOptimizer : public Optimizer {
 public:
  void step(double learning_rate, std::int64_t step) final;
  std::vector<std::pair<std::string, torch::Tensor>> state() final;
  void load_state(const std::vector<std::pair<std::string, torch::Tensor>>& state) final;
  const std::vector<ParameterGroup>& groups() const final { return groups_; }

 protected:
  // Tensors side by side that one call updates: same device, dtype and settings. Never empty.
  struct Batch {
    std::vector<torch::Tensor> parameters, gradients, exp_avgs, exp_avg_sqs;
  };

  // Of a group in one step.
  struct Rates {
    double learning_rate;
    double weight_decay;
    std::int64_t update;  // t, counts from 1
  };

  // Throws std::invalid_argument when an option is out of range.
  MomentOptimizer(OptimizerOptions options, std::vector<ParameterGroup> groups);

  const OptimizerOptions& options() const { return options_; }

 private:
  struct Moments {
    torch::Tensor exp_avg, exp_avg_sq;
  };

  // The update rule: changes parameters and moments in place, without gradient tracking.
  virtual void apply(const Batch& batch, const Rates& rates) const = 0;

  void check_options() const;
  void require(bool holds, const std::string& what, double value) const;
  void add_state(const ParameterGroup& group);
  void update(const ParameterGroup& group, const Rates& rates) const;

  OptimizerOptions options_;
  std::vector<ParameterGroup> groups_;
  std::map<std::string, Moments> moments_;
};

}  // namespace tupelo
