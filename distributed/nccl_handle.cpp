#include "distributed/nccl_handle.h"

#include <cuda_runtime_api.h>

#include <cstring>
#include <future>
#include <thread>
#include <utility>

#include "distributed/communication_error.h"

namespace tupelo {
namespace {

constexpr std::chrono::seconds kAbortPatience(10);
// NCCL takes a call over to a thread of its own, which is meant to be done before a sleep would end
// (not measured).
constexpr std::chrono::microseconds kAwake(300);
constexpr std::chrono::microseconds kPollInterval(50);

// NCCL's words, and what it knows beyond them.
std::string error_text(ncclResult_t result, ncclComm_t communicator) {
  const char* detail = ncclGetLastError(communicator);
  return std::string(ncclGetErrorString(result)) +
         (detail != nullptr && *detail != '\0' ? std::string(": ") + detail : "");
}

}  // namespace

std::string NcclHandle::make_id() {
  ncclUniqueId id;
  if (const auto result = ncclGetUniqueId(&id); result != ncclSuccess) {
    throw CommunicationError("ncclGetUniqueId failed: " + error_text(result, nullptr));
  }
  return {id.internal, sizeof(id.internal)};
}

NcclHandle::NcclHandle(const std::string& id, int rank, int world_size,
                       Clock::time_point deadline) {
  ncclUniqueId unique_id;
  if (id.size() != sizeof(unique_id.internal)) {
    throw CommunicationError("an NCCL id of " + std::to_string(id.size()) + " bytes");
  }
  std::memcpy(unique_id.internal, id.data(), id.size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const auto result = ncclCommInitRankConfig(&communicator_, world_size, unique_id, rank, &config);
  try {
    if (result != ncclSuccess && result != ncclInProgress) {
      throw CommunicationError("ncclCommInitRankConfig failed: " +
                               error_text(result, communicator_));
    }
    wait_until_in_stream("nccl creation of the communicator on rank " + std::to_string(rank),
                         deadline);
  } catch (...) {
    abort();
    throw;
  }
}

NcclHandle::~NcclHandle() { abort(); }

void NcclHandle::enqueue(const std::string& name,
                         const std::function<ncclResult_t(ncclComm_t)>& operation,
                         Clock::time_point deadline) {
  {
    std::lock_guard lock(mutex_);
    if (communicator_ == nullptr) throw CommunicationError(name + ": NCCL was aborted");
    const auto result = operation(communicator_);
    if (result != ncclSuccess && result != ncclInProgress) {
      throw CommunicationError(name + " failed: " + failure_text(result));
    }
  }
  wait_until_in_stream(name, deadline);
}

std::optional<std::string> NcclHandle::asynchronous_error() {
  std::lock_guard lock(mutex_);
  const auto result = poll();
  if (result == ncclSuccess || result == ncclInProgress) return std::nullopt;
  return failure_text(result);
}

void NcclHandle::abort() {
  // Calls on a non-blocking communicator return soon; if one does not, abort is what frees it.
  const bool locked = mutex_.try_lock_for(kAbortPatience);
  ncclComm_t communicator = std::exchange(communicator_, nullptr);
  if (locked) mutex_.unlock();
  if (communicator == nullptr) return;
  std::promise<void> aborted;
  auto done = aborted.get_future();
  int device = 0;
  const bool has_device = cudaGetDevice(&device) == cudaSuccess;
  std::thread([communicator, device, has_device, finished = std::move(aborted)]() mutable {
    if (has_device) cudaSetDevice(device);
    ncclCommAbort(communicator);
    finished.set_value();
  }).detach();
  done.wait_for(kAbortPatience);
}

void NcclHandle::finalize(Clock::time_point deadline) {
  try {
    enqueue("nccl end of the communicator", ncclCommFinalize, deadline);
  } catch (const CommunicationError&) {
    return abort();
  }
  std::lock_guard lock(mutex_);
  if (communicator_ != nullptr) ncclCommDestroy(std::exchange(communicator_, nullptr));
}

void NcclHandle::wait_until_in_stream(const std::string& name, Clock::time_point deadline) {
  const Clock::time_point began = Clock::now();
  while (true) {
    {
      std::lock_guard lock(mutex_);
      const auto result = poll();
      if (result == ncclSuccess) return;
      if (result != ncclInProgress) {
        throw CommunicationError(name + " failed: " + failure_text(result));
      }
    }
    if (Clock::now() >= deadline) throw CommunicationTimeout(name + " did not start in time");
    if (Clock::now() - began < kAwake) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPollInterval);
    }
  }
}

ncclResult_t NcclHandle::poll() {
  if (communicator_ == nullptr) return ncclInvalidUsage;
  ncclResult_t state = ncclSuccess;
  const auto result = ncclCommGetAsyncError(communicator_, &state);
  return result == ncclSuccess ? state : result;
}

std::string NcclHandle::failure_text(ncclResult_t result) const {
  return communicator_ == nullptr ? "NCCL was aborted" : error_text(result, communicator_);
}

}  // namespace tupelo
