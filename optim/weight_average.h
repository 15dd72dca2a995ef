// An exponential average of the weights over the steps of a run.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "optim/optimizer.h"

namespace tupelo {

// With n updates so far, n = 0, 1, ...:
//   a <- a + (1 - d) (w - a),   d = min(decay, (1 + n) / (10 + n))
// The second term lets the average leave the initial weights behind at once: until `decay` takes
// over it covers about the last tenth of the steps (the rule of tf.train.ExponentialMovingAverage).
// In the dtype of the weights, element by element: replicas that are equal stay equal. Not
// thread-safe.
class WeightAverage {
 public:
  // Begins as the weights. `decay` is in (0, 1).
  WeightAverage(std::vector<NamedParameter> parameters, double decay);

  // Takes in the weights as they are after a step.
  void update();
  // Begins anew, with the weights as they are.
  void restart();

  // Named like their parameters. The tensors alias the average's own storage.
  std::vector<std::pair<std::string, torch::Tensor>> tensors() const;
  std::int64_t updates() const { return updates_; }
  void set_updates(std::int64_t updates) { updates_ = updates; }

  // Weights and average change places, bit for bit.
  void swap();

 private:
  std::vector<std::string> names_;
  std::vector<torch::Tensor> weights_, averages_;
  double decay_;
  std::int64_t updates_ = 0;
};

}  // namespace tupelo
