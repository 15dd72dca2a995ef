// What the files that stand for the CUDA runtime (*_api.cpp) share, and give other parts of the
// emulator. Loaded before libcudart (LD_PRELOAD), their functions are found first; others, and the
// registration of kernels, stay with libcudart, which knows no device and says so. Errors are those
// of a real device, as far as they can tell a wrong use: an event of another device than its
// stream, a wait or an allocation while a stream is recorded. Recordings do not fork into other
// streams.
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

// Streams that are being recorded, of all devices, by the threads that began it.
void recording_began(cudaStreamCaptureMode mode);
void recording_ended();
bool is_anything_recorded();
// How the calling thread takes recordings; gives back how it did.
cudaStreamCaptureMode exchange_capture_mode(cudaStreamCaptureMode mode);
// Whether a call that might disturb a recording (of memory, of an event's state) is an error now,
// by the rules of cudaThreadExchangeStreamCaptureMode.
bool may_disturb_recording();

bool is_page_locked(const void* address);

}  // namespace emulated_gpu
