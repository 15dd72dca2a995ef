// Untying the first token ([CLS]) from the positions of the others.
#pragma once

#include <torch/types.h>

namespace tupelo {

// bias [N,T,T] with row 0 replaced by from_cls [N] and column 0 of the other rows by to_cls [N].
// An undefined from_cls means 0. Differentiable in all three.
torch::Tensor reset_cls(const torch::Tensor& bias, const torch::Tensor& from_cls,
                        const torch::Tensor& to_cls);

// rows [N,T,D] with row 0 set to zero. Differentiable.
torch::Tensor without_first_row(const torch::Tensor& rows);

}  // namespace tupelo
