#include "distributed/nccl_watchdog.h"

#include <c10/util/Exception.h>

#include <utility>

#include "distributed/communication_error.h"

namespace tupelo {
namespace {

using Clock = std::chrono::steady_clock;

// Long for a computer, short beside any sensible timeout.
constexpr std::chrono::milliseconds kInterval(20);

}  // namespace

void check_cuda(cudaError_t result, const char* call) {
  TORCH_CHECK(result == cudaSuccess, "CUDA error: ", cudaGetErrorString(result), " (", call, ")");
}

StreamEvent::StreamEvent() {
  check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

StreamEvent::~StreamEvent() { cudaEventDestroy(event_); }

void StreamEvent::record(cudaStream_t stream) {
  check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord");
}

void StreamEvent::hold_back(cudaStream_t stream) const {
  check_cuda(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
}

bool StreamEvent::has_passed() const {
  const auto result = cudaEventQuery(event_);
  if (result == cudaErrorNotReady) return false;
  check_cuda(result, "cudaEventQuery");
  return true;
}

NcclWatchdog::NcclWatchdog(std::shared_ptr<NcclHandle> handle, int device_index,
                           std::chrono::milliseconds timeout)
    : handle_(std::move(handle)),
      device_index_(device_index),
      timeout_(timeout),
      thread_([this] { run(); }) {}

NcclWatchdog::~NcclWatchdog() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void NcclWatchdog::watch(std::shared_ptr<StreamOperation> operation) {
  {
    std::lock_guard lock(mutex_);
    in_flight_.push_back(std::move(operation));
  }
  changed_.notify_all();
}

void NcclWatchdog::check() const {
  std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void NcclWatchdog::fail(const std::exception_ptr& failure) {
  {
    std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
  }
  changed_.notify_all();
  handle_->abort();
}

bool NcclWatchdog::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return in_flight_.empty() || failure_; });
  return !failure_;
}

void NcclWatchdog::run() {
  // Or else the questions about events may make a context on device 0
  // (https://github.com/meta-pytorch/torchcomms/pull/777).
  const auto chosen = cudaSetDevice(device_index_);
  std::unique_lock lock(mutex_);
  if (chosen != cudaSuccess) {
    lock.unlock();
    fail(std::make_exception_ptr(
        CommunicationError(std::string("cudaSetDevice failed: ") + cudaGetErrorString(chosen))));
    return;
  }
  while (!stopping_ && !failure_) {
    if (in_flight_.empty()) {
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    const auto failure = inspect();
    if (failure) fail(failure);
    lock.lock();
    if (in_flight_.empty()) changed_.notify_all();
    changed_.wait_for(lock, kInterval, [&] { return stopping_ || failure_; });
  }
}

std::exception_ptr NcclWatchdog::inspect() {
  try {
    if (const auto error = handle_->asynchronous_error()) {
      return std::make_exception_ptr(CommunicationError("nccl failed: " + *error));
    }
    return inspect_oldest();
  } catch (...) {
    return std::current_exception();
  }
}

std::exception_ptr NcclWatchdog::inspect_oldest() {
  while (true) {
    std::shared_ptr<StreamOperation> oldest;
    {
      std::lock_guard lock(mutex_);
      if (in_flight_.empty()) return nullptr;
      oldest = in_flight_.front();
    }
    if (!oldest->finished.has_passed()) {
      if (!oldest->started.has_passed()) return nullptr;
      if (!oldest->seen_started) oldest->seen_started = Clock::now();
      if (Clock::now() - *oldest->seen_started < timeout_) return nullptr;
      return std::make_exception_ptr(
          CommunicationTimeout(oldest->name + " failed: some rank did not join within " +
                               std::to_string(timeout_.count()) + " ms"));
    }
    std::lock_guard lock(mutex_);
    in_flight_.pop_front();
  }
}

}  // namespace tupelo
