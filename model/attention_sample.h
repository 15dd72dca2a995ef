// One sequence of a call of attention, without its padding; for observers.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "model/attention.h"

namespace tupelo {

class AttentionSample {
 public:
  // Sequence `index` of the call, which must outlive the sample.
  AttentionSample(const AttentionCall& call, std::int64_t index);
  // One per sequence that has a real token.
  static std::vector<AttentionSample> of(const AttentionCall& call);

  std::int64_t tokens() const { return real_.size(0); }  // n, real ones
  // [n] int64: where they stand in the call's rows.
  const torch::Tensor& real() const { return real_; }

  // attention_scores() between real tokens, [N,n,n], under `terms` in place of the call's and with
  // query and key multiplied by the factors; in `type`.
  torch::Tensor scores(const AttentionTerms& terms, double query_factor, double key_factor,
                       torch::Dtype type) const;
  // Entries [i,j] of a tensor [N,T,T] for real i and j, [N,n,n].
  torch::Tensor between_real(const torch::Tensor& matrices) const;

 private:
  torch::Tensor query_, key_;  // [1,N,T,X]
  torch::Tensor admissible_;   // [1,T] or undefined
  torch::Tensor real_;
};

// Entropy of softmax(scores) over the last dimension, of scores [N,n,n].
struct QueryEntropy {
  torch::Tensor nats;     // [N] float64: summed over the queries that see a key
  torch::Tensor queries;  // [N] int64: how many those are
};
QueryEntropy query_entropy(const torch::Tensor& scores);

}  // namespace tupelo
