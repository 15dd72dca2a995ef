// How widely attention spreads: its entropy, averaged while a model computes.
#pragma once

#include <cstdint>
#include <vector>

#include "model/attention.h"

namespace tupelo {

// Over all layers, heads and real queries that have a key.
class AttentionEntropy : public AttentionObserver {
 public:
  void enter_layer(std::int64_t) override {}
  void attend(const AttentionCall& call) override;

  // Sums to which those of other objects may be added, in a fixed order.
  std::vector<double> sums() const { return {nats_, queries_, relative_, choices_}; }

  struct Mean {
    double nats = 0;
    double relative = 0;  // to ln n, n real keys of the sequence; over sequences with n > 1
  };
  // NaN where nothing was seen.
  static Mean mean(const std::vector<double>& sums);

 private:
  double nats_ = 0, queries_ = 0;
  double relative_ = 0, choices_ = 0;
};

}  // namespace tupelo
