// From a table of biases per bucket or clipped distance to one value per head and distance.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "model/position/t5_buckets.h"

namespace tupelo {

// T5's buckets over a table [R,N], R >= buckets.
class T5RelativeLine {
 public:
  T5RelativeLine(std::int64_t buckets, std::int64_t max_distance);

  // [N,2T-1]: entry r + T - 1 is table[bucket(r)]. Differentiable; sums are deterministic.
  torch::Tensor operator()(const torch::Tensor& table, std::int64_t tokens);

 private:
  T5Buckets buckets_;
  torch::Tensor selector_;  // [2T-1,R] one-hot, of the latest length, dtype and device
};

// table [2R-1,N], row r + R - 1 for distance r, |r| < R; farther distances use the end rows.
// Returns [N,2T-1].
torch::Tensor clipped_line(const torch::Tensor& table, std::int64_t tokens);

}  // namespace tupelo
