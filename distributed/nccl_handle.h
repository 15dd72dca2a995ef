// One non-blocking NCCL communicator, never waited for without a deadline. Internal to
// distributed/.
#pragma once

#include <nccl.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace tupelo {

// Thread-safe: NCCL is not, so calls are made one at a time, and none while or after it is aborted.
class NcclHandle {
 public:
  using Clock = std::chrono::steady_clock;

  // The bytes of a new id, which one rank makes and all use.
  static std::string make_id();

  // On the current CUDA device. Throws CommunicationTimeout when not all ranks have joined by
  // `deadline`.
  NcclHandle(const std::string& id, int rank, int world_size, Clock::time_point deadline);
  // Aborts unless finalize() succeeded.
  ~NcclHandle();
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  // Calls `operation` and returns when NCCL has put it into its stream. `name` stands in messages.
  void enqueue(const std::string& name, const std::function<ncclResult_t(ncclComm_t)>& operation,
               Clock::time_point deadline);
  // What went wrong on the network or on another rank since, if anything.
  std::optional<std::string> asynchronous_error();
  // Ends whatever is running, on a thread of its own that is given up after 10 s.
  void abort();
  // The orderly end: everything in flight completes. Aborts at `deadline`.
  void finalize(Clock::time_point deadline);

 private:
  void wait_until_in_stream(const std::string& name, Clock::time_point deadline);
  ncclResult_t poll();
  std::string failure_text(ncclResult_t result) const;

  std::timed_mutex mutex_;
  ncclComm_t communicator_ = nullptr;  // null: aborted or finalized
};

}  // namespace tupelo
