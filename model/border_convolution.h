// A convolution over the tokens of a sequence, whose zero borders let positions leak in.
#pragma once

#include <torch/types.h>

#include "model/token_layout.h"

namespace tupelo {

// x + gelu(conv(x)) for hidden [B,T,H] ([2B,T,H] when it is complex), weight [H,H/groups,K] with K
// odd and bias [H]; the shape of hidden. gelu by the error function.
// Each sequence is surrounded by zeros, whatever stands beside it in the batch, padding included.
torch::Tensor border_convolution(const torch::Tensor& hidden, const torch::Tensor& weight,
                                 const torch::Tensor& bias, const TokenLayout& layout);

}  // namespace tupelo
