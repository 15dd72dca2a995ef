// The arithmetic of a reduction, shared by the backends that do it themselves.
// Internal to distributed/.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <vector>

#include "distributed/communicator.h"

namespace tupelo {

// output[i] = inputs[0][i] op inputs[1][i] op ..., evaluated from left to right; 16-bit floats in
// float32, rounded once at the end; integers modulo 2^bits. `output` may be one of the inputs.
// `inputs` are given in rank order, so that every backend and every rank computes the same bits.
void reduce_in_order(const std::vector<const void*>& inputs, void* output, std::size_t count,
                     torch::ScalarType dtype, ReduceOp op);

}  // namespace tupelo
