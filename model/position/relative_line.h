// From a table of biases per bucket or clipped distance to one value per head and distance.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "model/position/length_cache.h"
#include "model/position/t5_buckets.h"

namespace tupelo {

// T5's buckets over a table [R,N], R >= buckets.
class T5RelativeLine {
 public:
  T5RelativeLine(std::int64_t buckets, std::int64_t max_distance);

  // The table has the same number of rows in every call.
  // [N,2T-1]: entry r + T - 1 is table[bucket(r)]. Differentiable; sums are deterministic.
  torch::Tensor operator()(const torch::Tensor& table, std::int64_t tokens);

 private:
  T5Buckets buckets_;
  LengthCache selectors_;  // [2T-1,R] one-hot
};

// table [2R-1,N], row r + R - 1 for distance r, |r| < R; farther distances use the end rows.
// Returns [N,2T-1].
torch::Tensor clipped_line(const torch::Tensor& table, std::int64_t tokens);

}  // namespace tupelo
