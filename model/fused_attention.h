// LibTorch's fused attention, with its known faults avoided. For devices other than the CPU; the
// results are right on any.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "model/biased_attention.h"

namespace tupelo {

// softmax(scale query key^T) value of operands without bias, padding and vectors of distances.
torch::Tensor fused_attention(const AttentionOperands& operands, double scale, double dropout);

// With the bias, no padding. LibTorch expands the gradient of a bias over the samples of a call, so
// calls are made for blocks of the batch that keep it below `block_elements` numbers (but for one
// sample at least).
torch::Tensor fused_attention_with_bias(const AttentionOperands& operands, double scale,
                                        double dropout,
                                        std::int64_t block_elements = std::int64_t{1} << 25);

// With padding, no bias. A sample without any key gives zeros.
torch::Tensor fused_attention_with_padding(const AttentionOperands& operands, double scale,
                                           double dropout);

}  // namespace tupelo
