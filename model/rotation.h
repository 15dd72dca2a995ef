// Rotation of pairs of features.
#pragma once

#include <torch/types.h>

#include "model/position/attention_terms.h"

namespace tupelo {

// (a, b) -> (a cos - b sin, a sin + b cos) for the pairs of `features` [...,T,E] that `layout`
// names, with cos and sin [T,E/2]. Computed in the wider of float32 and the features' type, which
// the result has. Differentiable in `features` only.
torch::Tensor rotate(const torch::Tensor& features, const torch::Tensor& cos,
                     const torch::Tensor& sin, RotationLayout layout);

}  // namespace tupelo
