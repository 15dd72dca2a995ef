// How long a rank waits for others in a collective, and how considerately. Internal to
// distributed/.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "distributed/communication_error.h"

namespace tupelo {

// The clock of the collective that is running. One thread waits; any may abandon().
class Patience {
 public:
  // Of several ranks that wait, the one that can name the culprit should speak first. Those that
  // wait for a rank that itself waits for others grant it an eighth more.
  enum class Wait { kForTheCulprit, kForOneWhoWaits };

  // `waiters`, which any thread may change, counts the threads that wait for a result: whether to
  // poll eagerly.
  Patience(int rank, std::chrono::milliseconds timeout, std::shared_ptr<std::atomic<int>> waiters);

  // Starts the clock of the collective number `sequence`. `name` stands in error messages.
  void begin(std::string name, std::uint64_t sequence);

  // Polls `ready` until it holds. Throws CommunicationTimeout, with what `missing` says, and
  // CommunicationError after abandon().
  template <typename Ready, typename Missing>
  void wait_until(Ready ready, Missing missing, Wait wait = Wait::kForTheCulprit) const {
    if (ready()) return;
    const auto start = Clock::now();
    while (!ready()) {
      if (abandoned_) throw CommunicationError(where() + " was abandoned");
      const auto now = Clock::now();
      if (now >= deadline(wait)) throw_timeout(missing(), wait);
      pause(now - start);
    }
  }

  // From any thread: ends the wait that is running, or the next one that would not end at once.
  void abandon() { abandoned_ = true; }
  bool is_abandoned() const { return abandoned_; }

  const std::string& name() const { return name_; }
  std::uint64_t sequence() const { return sequence_; }
  // "mpi all_reduce(sum) of 5 Float #1 on rank 0"
  std::string where() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::chrono::milliseconds granted(Wait wait) const;
  Clock::time_point deadline(Wait wait) const { return begin_ + granted(wait); }
  void pause(Clock::duration waited) const;
  [[noreturn]] void throw_timeout(const std::string& missing, Wait wait) const;

  int rank_;
  std::chrono::milliseconds timeout_;
  std::shared_ptr<std::atomic<int>> waiters_;
  std::atomic<bool> abandoned_ = false;
  std::string name_;
  std::uint64_t sequence_ = 0;
  Clock::time_point begin_;
};

}  // namespace tupelo
