// Matrices whose entry depends on the distance key - query only.
#pragma once

#include <torch/types.h>

namespace tupelo {

// line [N,2T-1], entry r + T - 1 for distance r, as [N,T,T]: result[h,i,j] = line[h, j - i + T -
// 1]. No index tensor; backward sums along diagonals without atomics, so it is deterministic.
torch::Tensor toeplitz(const torch::Tensor& line);

}  // namespace tupelo
