// Keeps the deadlines of collectives that run on a CUDA stream. Internal to distributed/.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "distributed/nccl_handle.h"

namespace tupelo {

// Throws c10::Error naming the CUDA function `call`: what is wrong with a device is no matter of
// ranks.
void check_cuda(cudaError_t result, const char* call);

// A point in a stream.
class StreamEvent {
 public:
  StreamEvent();
  ~StreamEvent();
  StreamEvent(const StreamEvent&) = delete;
  StreamEvent& operator=(const StreamEvent&) = delete;

  void record(cudaStream_t stream);
  // Makes what is put into `stream` from now on wait for this point.
  void hold_back(cudaStream_t stream) const;
  bool has_passed() const;

 private:
  cudaEvent_t event_ = nullptr;
};

// A collective in the stream.
struct StreamOperation {
  std::string name;  // "nccl all_reduce(sum) of 5 Float #12 on rank 0"
  StreamEvent started;
  StreamEvent finished;
  // When the watchdog first saw it started; its clock starts there, since it may stand in the
  // stream behind computation for long.
  std::optional<std::chrono::steady_clock::time_point> seen_started;
};

// A thread that watches operations in stream order. When one fails or overruns its time, it first
// records the failure and then aborts NCCL, so that whoever is released by the abort finds the
// failure.
class NcclWatchdog {
 public:
  NcclWatchdog(std::shared_ptr<NcclHandle> handle, int device_index,
               std::chrono::milliseconds timeout);
  ~NcclWatchdog();
  NcclWatchdog(const NcclWatchdog&) = delete;
  NcclWatchdog& operator=(const NcclWatchdog&) = delete;

  void watch(std::shared_ptr<StreamOperation> operation);
  // Throws what went wrong, if anything did.
  void check() const;
  // Records `failure` unless an earlier one is known, and aborts NCCL.
  void fail(const std::exception_ptr& failure);
  // Returns when nothing is in flight or something failed; true when all is well.
  bool drain();

 private:
  void run();
  std::exception_ptr inspect();
  std::exception_ptr inspect_oldest();

  const std::shared_ptr<NcclHandle> handle_;
  const int device_index_;
  const std::chrono::milliseconds timeout_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<StreamOperation>> in_flight_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace tupelo
