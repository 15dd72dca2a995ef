#include "optim/muon.h"

#include <ATen/ops/_foreach_lerp.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "optim/adamw.h"
#include "optim/moment_optimizer.h"
#include "optim/newton_schulz.h"
#include "optim/slice_exchange.h"

namespace tupelo {
namespace {

constexpr const char* kKeller = "keller";
constexpr const char* kMoonshot = "moonshot";

void require_matrices(const std::vector<ParameterGroup>& groups) {
  for (const ParameterGroup& group : groups) {
    for (const NamedParameter& parameter : group.parameters) {
      if (!group.hidden_matrices || parameter.whole_sizes().size() == 2) continue;
      throw std::invalid_argument(c10::str("muon: parameter '", parameter.name, "' of group '",
                                           group.name, "' is no matrix, its shape is ",
                                           parameter.whole_sizes()));
    }
  }
}

class Muon final : public MomentOptimizer {
 public:
  Muon(const OptimizerOptions& options, std::vector<ParameterGroup> groups, SliceExchange* exchange)
      : MomentOptimizer(options, std::move(groups), exchange,
                        [](const ParameterGroup& group) { return !group.hidden_matrices; }) {
    require_matrices(this->groups());
  }

 private:
  void apply(const MomentBatch& batch, const MomentRates& rates) const override {
    if (!rates.hidden_matrices) return adamw_update(batch, rates, options(), options().epsilon);
    at::_foreach_lerp_(batch.exp_avgs, batch.gradients, 1 - options().momentum);
    const std::vector<at::Tensor> ahead =
        at::_foreach_lerp(batch.gradients, batch.exp_avgs, options().momentum);
    // Together, so that a device is waited for once.
    const std::vector<double> sums = whole_sums_of_squares(ahead);
    for (std::size_t i = 0; i < batch.parameters.size(); ++i) {
      torch::Tensor weight = batch.parameters[i];
      const at::IntArrayRef sizes = batch.named[i]->whole_sizes();
      const double scale = muon_scale(options().flavour, sizes[0], sizes[1]);
      weight.mul_(1 - rates.learning_rate * rates.weight_decay);
      weight.add_(direction(batch.named[i]->name, ahead[i], std::sqrt(sums[i])),
                  -rates.learning_rate * scale);
    }
  }

  // Of slices each rank makes the whole matrix orthogonal and keeps its part: the sum of ranks'
  // work is what it is without slices.
  torch::Tensor direction(const std::string& parameter, const torch::Tensor& ahead,
                          double norm) const {
    if (exchange() == nullptr) return orthogonalized(ahead, norm);
    return exchange()->part(parameter, orthogonalized(exchange()->whole(parameter, ahead), norm));
  }
};

}  // namespace

double muon_scale(const std::string& flavour, std::int64_t rows, std::int64_t columns) {
  const auto height = static_cast<double>(rows), width = static_cast<double>(columns);
  if (flavour == kMoonshot) return 0.2 * std::sqrt(std::max(height, width));
  TORCH_CHECK(flavour == kKeller, "no Muon flavour '", flavour, "'");
  return std::sqrt(std::max(1.0, height / width));
}

std::unique_ptr<Optimizer> make_muon(const OptimizerOptions& options,
                                     std::vector<ParameterGroup> groups, SliceExchange* exchange) {
  return std::make_unique<Muon>(options, std::move(groups), exchange);
}

std::vector<std::string> muon_flavours() { return {kKeller, kMoonshot}; }

}  // namespace tupelo
