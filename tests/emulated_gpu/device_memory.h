// The memory of emulated devices. What a program holds as a device's address cannot be read or
// written by it, as on a real device; the emulator reaches the same bytes at another address.
#pragma once

#include <cstddef>
#include <optional>

namespace emulated_gpu {

// As many as EMULATED_GPUS says, less those that CUDA_VISIBLE_DEVICES leaves out.
int device_count();

// Each device has EMULATED_GPU_MEMORY MiB (4096).
std::size_t total_bytes();
std::size_t free_bytes(int device);

// Null when the device has no such room left. Fresh memory is full of bytes 0xff, which are NaN as
// floats and -1 as integers, so that what is read without having been written shows.
void* allocate(int device, std::size_t bytes);
// False for an address that allocate() did not give.
bool release(void* address);

// The device whose memory an address is in.
std::optional<int> device_of(const void* address);
// Where the emulator reaches a device's bytes; other addresses are given back as they are.
void* reachable(const void* address);

}  // namespace emulated_gpu
