// Squared Euclidean norms of tensors.
#pragma once

#include <torch/types.h>

#include <vector>

namespace tupelo {

// The sum of squares of each tensor, accumulated in float64; for float32 and float64 on the host in
// an order that does not depend on the number of threads. Tensors may have any layout; those on a
// device cost one transfer together.
std::vector<double> sums_of_squares(const std::vector<torch::Tensor>& tensors);

}  // namespace tupelo
