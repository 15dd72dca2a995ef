// Named stretches of a step for NVIDIA's profilers.
#pragma once

namespace tupelo {

// From construction to destruction, on the calling thread (an NVTX range: what Nsight Systems shows
// above the kernels of that time). Nothing in a build without CUDA.
class ProfilerRange {
 public:
  // `name` is a literal.
  explicit ProfilerRange(const char* name);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

}  // namespace tupelo
