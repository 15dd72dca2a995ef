#include "model/attention_entropy.h"

#include <cmath>

#include "model/attention_sample.h"

namespace tupelo {

void AttentionEntropy::attend(const AttentionCall& call) {
  const torch::NoGradGuard no_gradients;
  for (const AttentionSample& sample : AttentionSample::of(call)) {
    const QueryEntropy entropy =
        query_entropy(sample.scores(call.terms, 1.0, 1.0, torch::kFloat32));
    const double sum = entropy.nats.sum().item<double>();
    const auto count = static_cast<double>(entropy.queries.sum().item<std::int64_t>());
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
