// Which gradient lies where. Internal to distributed/.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <vector>

namespace tupelo {

struct GradientBucket {
  torch::Tensor flat;                    // [sum of the members' sizes]
  std::vector<std::size_t> members;      // indices of parameters, in the order they lie in `flat`
  std::vector<torch::Tensor> gradients;  // views of `flat`, shaped like the members
};

// Places the gradients of `parameters` in zeroed buckets, the last parameter first; one bucket
// holds one dtype and device and at most `bucket_bytes`, or a single larger parameter. Buckets are
// ordered by the parameter that completes them.
std::vector<GradientBucket> place_gradients(const std::vector<torch::Tensor>& parameters,
                                            std::size_t bucket_bytes);

}  // namespace tupelo
