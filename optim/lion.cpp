#include "optim/lion.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sign.h>

#include "optim/moment_optimizer.h"

namespace tupelo {
namespace {

class Lion final : public MomentOptimizer {
 public:
  Lion(const OptimizerOptions& options, std::vector<ParameterGroup> groups, SliceExchange* exchange)
      : MomentOptimizer(options, std::move(groups), exchange,
                        [](const ParameterGroup&) { return false; }) {}

 private:
  void apply(const MomentBatch& batch, const MomentRates& rates) const override {
    const std::vector<at::Tensor> signs =
        at::_foreach_lerp(batch.exp_avgs, batch.gradients, 1 - options().beta1);
    at::_foreach_sign_(signs);
    at::_foreach_lerp_(batch.exp_avgs, batch.gradients, 1 - options().beta2);
    at::_foreach_mul_(batch.parameters, 1 - rates.learning_rate * rates.weight_decay);
    at::_foreach_add_(batch.parameters, signs, -rates.learning_rate);
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_lion(const OptimizerOptions& options,
                                     std::vector<ParameterGroup> groups, SliceExchange* exchange) {
  return std::make_unique<Lion>(options, std::move(groups), exchange);
}

std::vector<std::string> lion_flavours() { return {"paper"}; }

}  // namespace tupelo
