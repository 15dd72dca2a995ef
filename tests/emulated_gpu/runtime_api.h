// What the CUDA runtime's functions give other parts of the emulator.
#pragma once

#include <cuda_runtime_api.h>

#include "tests/emulated_gpu/streams.h"

namespace emulated_gpu {

// The calling thread's.
int current_device();
// Null names the current device's default stream.
Stream& stream_of(cudaStream_t handle);
bool is_page_locked(const void* address);

}  // namespace emulated_gpu
