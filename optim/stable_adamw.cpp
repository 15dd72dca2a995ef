#include "optim/stable_adamw.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_foreach_sub.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "optim/moment_optimizer.h"

namespace tupelo {
namespace {

// What makes a running mean of t values that of all of them alike as t is 1, and tends to beta.
double debiased(double beta, std::int64_t t) {
  const double power = std::pow(beta, static_cast<double>(t));
  return (beta - power) / (1 - power);
}

class StableAdamW final : public MomentOptimizer {
 public:
  StableAdamW(const OptimizerOptions& options, std::vector<ParameterGroup> groups,
              SliceExchange* exchange)
      : MomentOptimizer(options, std::move(groups), exchange) {}

 private:
  void apply(const MomentBatch& batch, const MomentRates& rates) const override {
    move_moments(batch, rates.update);
    const std::vector<at::Tensor> roots = at::_foreach_sqrt(batch.exp_avg_sqs);
    const std::vector<double> clipped = clipped_rates(batch, roots, rates.learning_rate);
    at::_foreach_add_(roots, options().epsilon);
    const std::vector<at::Tensor> updates = at::_foreach_div(batch.exp_avgs, roots);
    std::vector<at::Scalar> decays, lengths;
    for (const double rate : clipped) {
      decays.emplace_back(1 - rate * rates.weight_decay);
      lengths.emplace_back(rate);
    }
    at::_foreach_mul_(updates, lengths);
    at::_foreach_mul_(batch.parameters, decays);
    at::_foreach_sub_(batch.parameters, updates);
  }

  void move_moments(const MomentBatch& batch, std::int64_t update) const {
    const double beta2 = debiased(options().beta2, update);
    at::_foreach_lerp_(batch.exp_avgs, batch.gradients, 1 - debiased(options().beta1, update));
    at::_foreach_mul_(batch.exp_avg_sqs, beta2);
    at::_foreach_addcmul_(batch.exp_avg_sqs, batch.gradients, batch.gradients, 1 - beta2);
  }

  // The r of every tensor; `roots` of the second moments.
  std::vector<double> clipped_rates(const MomentBatch& batch, const std::vector<at::Tensor>& roots,
                                    double learning_rate) const {
    const std::vector<double> sums = whole_sums_of_squares(
        at::_foreach_div(batch.gradients, at::_foreach_clamp_min(roots, options().epsilon)));
    std::vector<double> rates;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::int64_t elements = c10::multiply_integers(batch.named[i]->whole_sizes());
      const auto count = static_cast<double>(std::max<std::int64_t>(elements, 1));
      rates.push_back(learning_rate / std::max(1.0, std::sqrt(sums[i] / count)));
    }
    return rates;
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_stable_adamw(const OptimizerOptions& options,
                                             std::vector<ParameterGroup> groups,
                                             SliceExchange* exchange) {
  return std::make_unique<StableAdamW>(options, std::move(groups), exchange);
}

std::vector<std::string> stable_adamw_flavours() { return {"paper"}; }

}  // namespace tupelo
