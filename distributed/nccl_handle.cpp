#include "distributed/nccl_handle.h"

#include <cstring>
#include <future>
#include <thread>
#include <utility>

#include "distributed/communication_error.h"

namespace tupelo {
namespace {

constexpr std::chrono::seconds kAbortPatience(10);
constexpr std::chrono::microseconds kPollInterval(50);

}  // namespace

std::string NcclHandle::make_id() {
  ncclUniqueId id;
  if (const auto result = ncclGetUniqueId(&id); result != ncclSuccess) {
    throw CommunicationError(std::string("ncclGetUniqueId failed: ") + ncclGetErrorString(result));
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
  if (result != ncclSuccess && result != ncclInProgress) {
    throw CommunicationError("ncclCommInitRankConfig failed: " + error_text(result));
  }
  try {
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
      throw CommunicationError(name + " failed: " + error_text(result));
    }
  }
  wait_until_in_stream(name, deadline);
}

std::optional<std::string> NcclHandle::asynchronous_error() {
  std::lock_guard lock(mutex_);
  const auto result = poll();
  if (result == ncclSuccess || result == ncclInProgress) return std::nullopt;
  return error_text(result);
}

void NcclHandle::abort() {
  // Calls on a non-blocking communicator return soon; if one does not, abort is what frees it.
  const bool locked = mutex_.try_lock_for(kAbortPatience);
  ncclComm_t communicator = std::exchange(communicator_, nullptr);
  if (locked) mutex_.unlock();
  if (communicator == nullptr) return;
  std::promise<void> aborted;
  auto done = aborted.get_future();
  std::thread([communicator, finished = std::move(aborted)]() mutable {
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
  while (true) {
    {
      std::lock_guard lock(mutex_);
      const auto result = poll();
      if (result == ncclSuccess) return;
      if (result != ncclInProgress) {
        throw CommunicationError(name + " failed: " + error_text(result));
      }
    }
    if (Clock::now() >= deadline) throw CommunicationTimeout(name + " did not start in time");
    std::this_thread::sleep_for(kPollInterval);
  }
}

ncclResult_t NcclHandle::poll() {
  if (communicator_ == nullptr) return ncclInvalidUsage;
  ncclResult_t state = ncclSuccess;
  const auto result = ncclCommGetAsyncError(communicator_, &state);
  return result == ncclSuccess ? state : result;
}

std::string NcclHandle::error_text(ncclResult_t result) const {
  if (communicator_ == nullptr) return "NCCL was aborted";
  const char* detail = ncclGetLastError(communicator_);
  return std::string(ncclGetErrorString(result)) +
         (detail != nullptr && *detail != '\0' ? std::string(": ") + detail : "");
}

}  // namespace tupelo
