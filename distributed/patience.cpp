#include "distributed/patience.h"

#include <sched.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace tupelo {

Patience::Patience(int rank, std::chrono::milliseconds timeout,
                   std::shared_ptr<std::atomic<int>> waiters)
    : rank_(rank), timeout_(timeout), waiters_(std::move(waiters)) {}

void Patience::begin(std::string name, std::uint64_t sequence) {
  name_ = std::move(name);
  sequence_ = sequence;
  begin_ = Clock::now();
}

std::chrono::milliseconds Patience::granted(Wait wait) const {
  return wait == Wait::kForTheCulprit ? timeout_ : timeout_ + timeout_ / 8;
}

// Between two polls. Spinning helps a peer that is about to answer; after that cores belong to
// computation, and the sleep stays a small fraction of what was waited already, so that it costs
// little in relation.
void Patience::pause(Clock::duration waited) const {
  using std::chrono::microseconds;
  constexpr microseconds kSpin{20};
  constexpr microseconds kYield{2000};
  constexpr Clock::duration kShortest = microseconds(10);
  constexpr Clock::duration kLongest = microseconds(500);
  if (waited < kSpin) return;
  if (*waiters_ > 0 && waited < kYield) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(std::clamp(waited / 16, kShortest, kLongest));
  }
}

void Patience::throw_timeout(const std::string& missing, Wait wait) const {
  throw CommunicationTimeout(where() + " failed: " + missing + " within " +
                             std::to_string(granted(wait).count()) + " ms");
}

std::string Patience::where() const {
  std::string text = "mpi ";
  text += name_ + " #" + std::to_string(sequence_) + " on rank " + std::to_string(rank_);
  return text;
}

}  // namespace tupelo
