#include "model/attention_entropy.h"

#include <cmath>

#include "model/attention_sample.h"

namespace tupelo {

void AttentionEntropy::attend(const AttentionCall& call) {
  const torch::NoGradGuard no_gradients;
  for (const AttentionSample& sample : AttentionSample::of(call)) {
    const torch::Tensor entropy =
        attention_entropy(sample.scores(call.terms, 1.0, 1.0, torch::kFloat32));  // [N,n]
    const torch::Tensor has_key = entropy.isnan().logical_not();
    const double sum = entropy.to(torch::kDouble).nansum().item<double>();
    const double count = has_key.sum().item<double>();
    nats_ += sum;
    queries_ += count;
    if (sample.tokens() > 1) {
      relative_ += sum / std::log(static_cast<double>(sample.tokens()));
      choices_ += count;
    }
  }
}

AttentionEntropy::Mean AttentionEntropy::mean(const std::vector<double>& sums) {
  return {sums.at(0) / sums.at(1), sums.at(2) / sums.at(3)};
}

}  // namespace tupelo
