#include "model/attention_sample.h"

#include <limits>

namespace tupelo {

using torch::Tensor;

AttentionSample::AttentionSample(const AttentionCall& call, std::int64_t index)
    : query_(call.query.narrow(0, index, 1)), key_(call.key.narrow(0, index, 1)) {
  if (call.admissible_keys.defined()) {
    admissible_ = call.admissible_keys.narrow(0, index, 1);
    real_ = admissible_[0].nonzero().flatten();
  } else {
    real_ = torch::arange(query_.size(2),
                          torch::TensorOptions().dtype(torch::kInt64).device(query_.device()));
  }
}

std::vector<AttentionSample> AttentionSample::of(const AttentionCall& call) {
  std::vector<AttentionSample> samples;
  for (std::int64_t index = 0; index < call.query.size(0); ++index) {
    AttentionSample sample(call, index);
    if (sample.tokens() > 0) {
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

Tensor AttentionSample::scores(const AttentionTerms& terms, double query_factor, double key_factor,
                               torch::Dtype type) const {
  return between_real(attention_scores(query_.to(type) * query_factor, key_.to(type) * key_factor,
                                       terms, admissible_)[0]);
}

Tensor AttentionSample::between_real(const Tensor& matrices) const {
  if (tokens() == matrices.size(-1)) {
    return matrices;
  }
  return matrices.index_select(-2, real_).index_select(-1, real_);
}

QueryEntropy query_entropy(const Tensor& scores) {
  const Tensor blind = scores.amax(-1).eq(-std::numeric_limits<double>::infinity());  // [N,n]
  const Tensor entropy = at::special_entr(at::softmax(scores, -1)).sum(-1);
  return {entropy.masked_fill(blind, 0.0).to(torch::kDouble).sum(-1), blind.logical_not().sum(-1)};
}

}  // namespace tupelo
