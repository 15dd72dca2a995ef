#include "optim/adamw.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>

#include <cmath>

namespace tupelo {
namespace {

constexpr const char* kTorch = "torch";
constexpr const char* kFairseq = "fairseq";

class AdamW final : public MomentOptimizer {
 public:
  AdamW(const OptimizerOptions& options, std::vector<ParameterGroup> groups,
        SliceExchange* exchange)
      : MomentOptimizer(options, std::move(groups), exchange),
        epsilon_before_correction_(options.flavour == kFairseq) {}

 private:
  void apply(const MomentBatch& batch, const MomentRates& rates) const override {
    // fairseq's update is torch's with epsilon / sqrt(1 - beta2^t): multiply its numerator and
    // denominator by 1 / sqrt(1 - beta2^t). So one kernel serves both.
    const double correction2 =
        std::sqrt(1 - std::pow(options().beta2, static_cast<double>(rates.update)));
    const double epsilon =
        epsilon_before_correction_ ? options().epsilon / correction2 : options().epsilon;
    adamw_update(batch, rates, options(), epsilon);
  }

  bool epsilon_before_correction_;
};

}  // namespace

void adamw_update(const MomentBatch& batch, const MomentRates& rates,
                  const OptimizerOptions& options, double epsilon) {
  const at::Tensor update = at::full({}, static_cast<double>(rates.update),
                                     batch.parameters.front().options().dtype(at::kFloat));
  const std::vector<at::Tensor> updates(batch.parameters.size(), update);
  at::_fused_adamw_(batch.parameters, batch.gradients, batch.exp_avgs, batch.exp_avg_sqs,
                    /*max_exp_avg_sqs=*/{}, updates, rates.learning_rate, options.beta1,
                    options.beta2, rates.weight_decay, epsilon, /*amsgrad=*/false,
                    /*maximize=*/false);
}

std::unique_ptr<Optimizer> make_adamw(const OptimizerOptions& options,
                                      std::vector<ParameterGroup> groups, SliceExchange* exchange) {
  return std::make_unique<AdamW>(options, std::move(groups), exchange);
}

std::vector<std::string> adamw_flavours() { return {kTorch, kFairseq}; }

}  // namespace tupelo
