// What the files that stand for the CUDA runtime (*_api.cpp) share, and give other parts of the
// emulator. Loaded before libcudart (LD_PRELOAD), their functions are found first; others, and the
// registration of kernels, stay with libcudart, which knows no device and says so. Errors are those
// of a real device, as far as they can tell a wrong use: another device's stream, a wait while a
// stream is recorded.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "tests/emulated_gpu/streams.h"

namespace emulated_gpu {

// The calling thread's.
int current_device();
void set_current_device(int device);

// Remembers an error for cudaGetLastError and gives it back.
cudaError_t done(cudaError_t result);

// Null names the current device's default stream.
Stream& stream_of(cudaStream_t handle);
Stream& make_stream(int device);
std::vector<Stream*> streams_on(int device);
// A host's wait, counted as `what`; an error while the stream is being recorded.
cudaError_t wait_for(Stream& stream, const char* what);

// Streams that are being recorded, of all devices.
void recording_began();
void recording_ended();
bool is_anything_recorded();

bool is_page_locked(const void* address);

}  // namespace emulated_gpu
