// Ranks as threads of one process. A collective is a meeting: each rank leaves its tensors there
// and goes on; the last one to arrive does the work for all.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "distributed/backends.h"
#include "distributed/collective.h"
#include "distributed/solo_communicator.h"

namespace tupelo {
namespace {

using Clock = std::chrono::steady_clock;

struct Meeting {
  std::uint64_t sequence = 0;
  std::vector<std::optional<Collective>> collectives;  // by rank
  bool done = false;

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < collectives.size(); ++rank) {
      if (!collectives[rank]) ranks.push_back(static_cast<int>(rank));
    }
    return ranks;
  }
};

const void* slice(const torch::Tensor& tensor, std::size_t index, std::size_t bytes) {
  return static_cast<const std::byte*>(tensor.const_data_ptr()) + index * bytes;
}

void perform(const std::vector<std::optional<Collective>>& collectives) {
  const Collective& first = *collectives.front();
  if (first.kind == CollectiveKind::kBarrier) return;
  const std::size_t world_size = collectives.size();
  const std::size_t bytes = std::min(first.input.nbytes(), first.output.nbytes());
  const auto reduce = [&](std::size_t slice_index, const torch::Tensor& output) {
    std::vector<const void*> inputs;
    for (const auto& each : collectives) inputs.push_back(slice(each->input, slice_index, bytes));
    reduce_in_order(inputs, output.data_ptr(), count_of(output), reduction_of(first));
  };
  const auto copy_to_all = [&](const torch::Tensor& source, std::size_t slice_index) {
    for (const auto& each : collectives) {
      auto* target = static_cast<std::byte*>(each->output.data_ptr()) + slice_index * bytes;
      if (bytes > 0) std::memmove(target, source.const_data_ptr(), bytes);
    }
  };
  switch (first.kind) {
    case CollectiveKind::kAllReduce:
      reduce(0, first.output);
      return copy_to_all(first.output, 0);
    case CollectiveKind::kReduceScatter:
      for (std::size_t rank = 0; rank < world_size; ++rank) reduce(rank, collectives[rank]->output);
      return;
    case CollectiveKind::kAllGather:
      for (std::size_t rank = 0; rank < world_size; ++rank) {
        copy_to_all(collectives[rank]->input, rank);
      }
      return;
    case CollectiveKind::kBroadcast:
      return copy_to_all(collectives[static_cast<std::size_t>(first.root)]->input, 0);
    case CollectiveKind::kBarrier:
      return;
  }
}

class LocalWorld {
 public:
  LocalWorld(int size, CommunicatorOptions options)
      : size_(size), options_(options), next_sequence_(size, 0), left_(size, false) {}

  int size() const { return size_; }

  std::shared_ptr<Meeting> join(int rank, Collective collective) {
    std::unique_lock lock(mutex_);
    if (failure_) throw_failure("communicator", rank);
    auto meeting = meeting_of(next_sequence_[rank]++);
    check_same(*meeting, collective, rank);
    meeting->collectives[rank] = std::move(collective);
    const auto missing = meeting->missing();
    if (missing.empty()) {
      finish(*meeting, lock);
    } else if (const auto gone = departed(missing); !gone.empty()) {
      fail({false, describe_ranks(gone) + " left the world without joining " +
                       describe(*meeting->collectives[rank])});
      throw_failure(name(*meeting, rank), rank);
    }
    return meeting;
  }

  bool is_done(const Meeting& meeting) const {
    std::lock_guard lock(mutex_);
    return meeting.done;
  }

  void wait(const Meeting& meeting, int rank, Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [&] { return meeting.done || failure_; });
    if (meeting.done) return;
    const auto where = name(meeting, rank);
    if (!failure_) {
      fail({true, describe_ranks(meeting.missing()) + " did not join within " +
                      std::to_string(options_.timeout.count()) + " ms"});
    }
    throw_failure(where, rank);
  }

  void leave(int rank) {
    std::lock_guard lock(mutex_);
    left_[rank] = true;
    const bool awaited = open_.lower_bound(next_sequence_[rank]) != open_.end();
    if (awaited && !failure_) {
      fail({false, describe_ranks({rank}) + " left the world without joining"});
    }
  }

  std::chrono::milliseconds timeout() const { return options_.timeout; }

 private:
  struct Failure {
    bool is_timeout;
    std::string reason;
  };

  std::shared_ptr<Meeting> meeting_of(std::uint64_t sequence) {
    auto& meeting = open_[sequence];
    if (!meeting) {
      meeting = std::make_shared<Meeting>();
      meeting->sequence = sequence;
      meeting->collectives.resize(static_cast<std::size_t>(size_));
    }
    return meeting;
  }

  void check_same(const Meeting& meeting, const Collective& collective, int rank) {
    const auto mine = describe(collective);
    for (const auto& other : meeting.collectives) {
      if (!other || describe(*other) == mine) continue;
      fail({false, "ranks issue different collectives: " + describe(*other) + " and " + mine});
      throw_failure(mine + " #" + std::to_string(meeting.sequence), rank);
    }
  }

  void finish(Meeting& meeting, std::unique_lock<std::mutex>& lock) {
    open_.erase(meeting.sequence);
    const auto collectives = std::exchange(meeting.collectives, {});
    lock.unlock();
    perform(collectives);
    lock.lock();
    meeting.done = true;
    changed_.notify_all();
  }

  std::vector<int> departed(const std::vector<int>& ranks) const {
    std::vector<int> gone;
    std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(gone),
                 [&](int rank) { return left_[rank]; });
    return gone;
  }

  static std::string name(const Meeting& meeting, int rank) {
    const auto& collective = meeting.collectives[static_cast<std::size_t>(rank)];
    return (collective ? describe(*collective) + " " : "collective ") + "#" +
           std::to_string(meeting.sequence);
  }

  void fail(Failure failure) {
    failure_ = std::move(failure);
    open_.clear();
    changed_.notify_all();
  }

  [[noreturn]] void throw_failure(const std::string& where, int rank) const {
    const auto text =
        "local " + where + " on rank " + std::to_string(rank) + " failed: " + failure_->reason;
    if (failure_->is_timeout) throw CommunicationTimeout(text);
    throw CommunicationError(text);
  }

  const int size_;
  const CommunicatorOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> next_sequence_;  // by rank
  std::vector<bool> left_;                    // by rank
  std::map<std::uint64_t, std::shared_ptr<Meeting>> open_;
  std::optional<Failure> failure_;
};

class LocalWork : public Work {
 public:
  LocalWork(std::shared_ptr<LocalWorld> world, std::shared_ptr<Meeting> meeting, int rank)
      : world_(std::move(world)),
        meeting_(std::move(meeting)),
        rank_(rank),
        deadline_(Clock::now() + world_->timeout()) {}

  bool is_completed() const override { return world_->is_done(*meeting_); }
  void wait() override { world_->wait(*meeting_, rank_, deadline_); }

 private:
  std::shared_ptr<LocalWorld> world_;
  std::shared_ptr<Meeting> meeting_;
  int rank_;
  Clock::time_point deadline_;
};

class LocalCommunicator : public CollectiveCommunicator {
 public:
  LocalCommunicator(std::shared_ptr<LocalWorld> world, int rank)
      : world_(std::move(world)), rank_(rank) {}
  ~LocalCommunicator() override { world_->leave(rank_); }

  std::string backend() const override { return "local"; }
  int rank() const override { return rank_; }
  int world_size() const override { return world_->size(); }

 private:
  std::unique_ptr<Work> start(Collective collective) override {
    return std::make_unique<LocalWork>(world_, world_->join(rank_, std::move(collective)), rank_);
  }

  std::shared_ptr<LocalWorld> world_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_local_world(int world_size,
                                                            CommunicatorOptions options) {
  TORCH_CHECK(world_size >= 1, "a world of ", world_size, " ranks");
  std::vector<std::unique_ptr<Communicator>> ranks;
  if (world_size == 1) {
    ranks.push_back(make_solo_communicator("local"));
    return ranks;
  }
  const auto world = std::make_shared<LocalWorld>(world_size, options);
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.push_back(std::make_unique<LocalCommunicator>(world, rank));
  }
  return ranks;
}

}  // namespace tupelo
