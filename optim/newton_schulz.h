// Matrices whose singular values are all near 1.
#pragma once

#include <torch/types.h>

namespace tupelo {

// For `matrix` [R,C] = U S V^T of Euclidean norm `norm` about U V^T: five steps X <- a X + (b A + c
// A^2) X, A = X X^T, from matrix / norm, with the coefficients of Jordan
// (kellerjordan.github.io/posts/muon), whose singular values end in about [0.68, 1.14] rather than
// at 1. In the dtype of `matrix`, where that code computes in bfloat16. The zero matrix stays zero.
torch::Tensor orthogonalized(const torch::Tensor& matrix, double norm);

}  // namespace tupelo
