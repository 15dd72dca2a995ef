// What the tensors of a stretch of code occupy, as LibTorch's allocators count it.
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>

namespace tupelo {

// Counts allocations and releases from construction to destruction, those of the backward pass
// included, of the constructing thread and of the threads that LibTorch runs its backward passes
// on. Bytes asked for on the CPU, blocks (multiples of 512 bytes) on CUDA. Meters nest: the
// innermost counts. Takes the place of LibTorch's profiler while it lives.
class AllocationMeter {
 public:
  AllocationMeter();
  ~AllocationMeter();
  AllocationMeter(const AllocationMeter&) = delete;
  AllocationMeter& operator=(const AllocationMeter&) = delete;

  // Allocated minus released since construction. A release of an older block is not seen on the
  // CPU, and counts as negative on CUDA.
  std::int64_t live_bytes() const;
  // Largest live_bytes() since construction or the last mark().
  std::int64_t peak_bytes() const;
  void mark();

 private:
  class Ledger;
  std::shared_ptr<Ledger> ledger_;
  c10::DebugInfoGuard guard_;
};

}  // namespace tupelo
