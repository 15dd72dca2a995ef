#include "model/complex_attention.h"

#include <limits>

#include "model/dropout.h"

namespace tupelo {

using torch::Tensor;

Tensor modulus_scores(const Tensor& query, const Tensor& key, double scale) {
  constexpr double kInsideRoot = 1e-12;  // keeps the root's derivative at 0 finite
  const auto wide = at::promote_types(query.scalar_type(), at::kFloat);
  const auto halves = query.to(wide).chunk(2, -1);
  const Tensor right = key.to(wide).transpose(-1, -2);
  const auto key_halves = key.to(wide).chunk(2, -1);
  const Tensor swapped = at::cat({key_halves[1], key_halves[0]}, -1).transpose(-1, -2);
  const Tensor real = at::matmul(at::cat({halves[0], halves[1].neg()}, -1), right);
  const Tensor imaginary = at::matmul(query.to(wide), swapped);
  return (real.square() + imaginary.square() + kInsideRoot).sqrt() * scale;
}

Tensor modulus_attention(Tensor scores, const Tensor& value, const Tensor& admissible_keys,
                         double dropout_probability) {
  Tensor any;  // [B,1]
  if (admissible_keys.defined()) {
    any = admissible_keys.any(-1, /*keepdim=*/true);
    const Tensor blocked = admissible_keys.logical_not().logical_and(any);
    scores = scores.masked_fill(blocked.unsqueeze(1).unsqueeze(1),
                                -std::numeric_limits<double>::infinity());
  }
  const Tensor probabilities = dropout(at::softmax(scores, -1), dropout_probability);
  const Tensor result = at::matmul(probabilities.to(value.scalar_type()), value);
  return any.defined() ? result * any.view({-1, 1, 1, 1}).to(result.scalar_type()) : result;
}

}  // namespace tupelo
