// Which gradient lies where. Internal to distributed/.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tupelo {

struct GradientBucket {
  torch::Tensor flat;                    // [sum of the members' sizes and of gaps, filled up]
  std::vector<std::size_t> members;      // indices of parameters, in the order they lie in `flat`
  std::vector<std::int64_t> begins;      // of each member in `flat`
  std::vector<torch::Tensor> gradients;  // views of `flat`, shaped like the members
};

// Gradients of 16-bit parameters are summed in float32.
at::ScalarType gradient_type(const torch::Tensor& parameter);

// Places the gradients of `parameters` in zeroed buckets, the last parameter first; one bucket
// holds parameters of one dtype and device and at most `bucket_bytes` of gradients, or a single
// larger one. Buckets are ordered by the parameter that completes them.
//
// When `slices` is above 1 a bucket can be cut into so many equal ones, and each gradient begins,
// and is cut, at multiples of 64 elements: kernels that treat the last few elements of a tensor
// apart from whole vectors then compute the same bits for a slice as for the whole.
std::vector<GradientBucket> place_gradients(const std::vector<torch::Tensor>& parameters,
                                            std::size_t bucket_bytes, int slices = 1);

}  // namespace tupelo
