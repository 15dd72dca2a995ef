// The most memory that this process has used so far.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace tupelo {

// Bytes: of a CUDA device those that LibTorch's allocator held at once, else the process's
// resident memory (VmHWM). 0 where the system does not tell.
std::int64_t peak_memory_bytes(c10::Device device);

}  // namespace tupelo
