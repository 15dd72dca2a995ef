// The arithmetic of emulated collectives.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <vector>

namespace emulated_gpu {

std::size_t size_of(ncclDataType_t type);

// `count` elements of each rank's input into one output, by ncclSum, ncclMax or ncclMin. Halves are
// added as float32, in the order of ranks: a real NCCL may add in another order, and round between.
void reduce(ncclDataType_t type, const std::vector<const char*>& inputs, char* output,
            std::size_t count, ncclRedOp_t op);

}  // namespace emulated_gpu
