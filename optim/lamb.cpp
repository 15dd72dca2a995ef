#include "optim/lamb.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_foreach_sub.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>

#include "optim/moment_optimizer.h"

namespace tupelo {
namespace {

constexpr std::array<LambFlavour, 2> kFlavours = {
    {{"corrected", true, false, std::numeric_limits<double>::infinity()},
     {"fairseq", false, true, 10.0}}};

bool adapts(const LambFlavour& flavour, double weight_decay) {
  return flavour.adapts_undecayed || weight_decay != 0;
}

class Lamb final : public MomentOptimizer {
 public:
  Lamb(const OptimizerOptions& options, std::vector<ParameterGroup> groups, SliceExchange* exchange)
      : MomentOptimizer(options, std::move(groups), exchange),
        flavour_(lamb_flavour(options.flavour)) {}

 private:
  void apply(const MomentBatch& batch, const MomentRates& rates) const override {
    move_moments(batch);
    const std::vector<at::Tensor> updates = directions(batch, rates);
    at::_foreach_mul_(updates, lengths(batch, rates, updates));
    at::_foreach_sub_(batch.parameters, updates);
  }

  void move_moments(const MomentBatch& batch) const {
    at::_foreach_mul_(batch.exp_avgs, options().beta1);
    at::_foreach_add_(batch.exp_avgs, batch.gradients, 1 - options().beta1);
    at::_foreach_mul_(batch.exp_avg_sqs, options().beta2);
    at::_foreach_addcmul_(batch.exp_avg_sqs, batch.gradients, batch.gradients, 1 - options().beta2);
  }

  double correction(double beta, const MomentRates& rates) const {
    return flavour_.corrects_bias ? 1 - std::pow(beta, static_cast<double>(rates.update)) : 1.0;
  }

  // The u of every tensor.
  std::vector<at::Tensor> directions(const MomentBatch& batch, const MomentRates& rates) const {
    const std::vector<at::Tensor> roots = at::_foreach_sqrt(batch.exp_avg_sqs);
    at::_foreach_div_(roots, std::sqrt(correction(options().beta2, rates)));
    at::_foreach_add_(roots, options().epsilon);
    std::vector<at::Tensor> updates = at::_foreach_div(batch.exp_avgs, roots);
    at::_foreach_div_(updates, correction(options().beta1, rates));
    if (rates.weight_decay != 0) {
      at::_foreach_add_(updates, batch.parameters, rates.weight_decay);
    }
    return updates;
  }

  // Learning rate times trust ratio of every tensor.
  std::vector<at::Scalar> lengths(const MomentBatch& batch, const MomentRates& rates,
                                  const std::vector<at::Tensor>& updates) const {
    const std::size_t count = updates.size();
    if (!adapts(flavour_, rates.weight_decay)) {
      return std::vector<at::Scalar>(count, rates.learning_rate);
    }
    // One list for both, so that a device is waited for once.
    std::vector<at::Tensor> measured = batch.parameters;
    measured.insert(measured.end(), updates.begin(), updates.end());
    const std::vector<double> sums = whole_sums_of_squares(measured);
    std::vector<at::Scalar> lengths;
    for (std::size_t i = 0; i < count; ++i) {
      lengths.emplace_back(rates.learning_rate * trust_ratio(flavour_, rates.weight_decay,
                                                             std::sqrt(sums[i]),
                                                             std::sqrt(sums[count + i])));
    }
    return lengths;
  }

  const LambFlavour& flavour_;
};

}  // namespace

const LambFlavour& lamb_flavour(const std::string& name) {
  for (const LambFlavour& flavour : kFlavours) {
    if (name == flavour.name) return flavour;
  }
  throw std::out_of_range("no LAMB flavour '" + name + "'");
}

std::vector<std::string> lamb_flavours() {
  std::vector<std::string> names;
  for (const LambFlavour& flavour : kFlavours) names.emplace_back(flavour.name);
  return names;
}

double trust_ratio(const LambFlavour& flavour, double weight_decay, double weight_norm,
                   double update_norm) {
  if (!adapts(flavour, weight_decay)) return 1.0;
  const double length = std::min(weight_norm, flavour.largest_weight_norm);
  return length > 0 && update_norm > 0 ? length / update_norm : 1.0;
}

std::unique_ptr<Optimizer> make_lamb(const OptimizerOptions& options,
                                     std::vector<ParameterGroup> groups, SliceExchange* exchange) {
  return std::make_unique<Lamb>(options, std::move(groups), exchange);
}

}  // namespace tupelo
