#include "distributed/attempt.h"

#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "distributed/collective.h"
#include "distributed/communication_error.h"

namespace tupelo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPollInterval(5);

std::string new_word() {
  std::random_device random;
  return std::to_string(random()) + "-" + std::to_string(random());
}

std::string key(const std::string& what, int rank) {
  return "tupelo/" + what + "/" + std::to_string(rank);
}

std::optional<std::string> read(c10d::Store& store, const std::string& key) {
  if (!store.check({key})) return std::nullopt;
  return store.get_to_str(key);
}

// Rank 0's part. A rank that was started anew has another word than the one that was there before.
class Host {
 public:
  Host(c10d::Store& store, int world_size)
      : store_(store), attempt_(new_word()), answered_(static_cast<std::size_t>(world_size)) {
    for (int rank = 1; rank < world_size; ++rank) missing_.push_back(rank);
  }

  const std::string& attempt() const { return attempt_; }
  const std::vector<int>& missing() const { return missing_; }

  void look() {
    std::erase_if(missing_, [&](int rank) {
      if (read(store_, key("thanks", rank)) == attempt_) return true;
      answer(rank);
      return false;
    });
  }

 private:
  void answer(int rank) {
    const auto word = read(store_, key("hello", rank));
    std::string& answered = answered_[static_cast<std::size_t>(rank)];
    if (!word || *word == answered) return;
    store_.set(key("welcome", rank), *word + " " + attempt_);
    answered = *word;
  }

  c10d::Store& store_;
  const std::string attempt_;
  std::vector<std::string> answered_;  // words, by rank
  std::vector<int> missing_;
};

}  // namespace

std::string agree_on_attempt(c10d::Store& store, int rank, int world_size,
                             std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  const auto wait = [&](const std::vector<int>& missing) {
    if (Clock::now() >= deadline) {
      throw CommunicationTimeout("ranks that meet at a store: nothing came from " +
                                 describe_ranks(missing) + " within " +
                                 std::to_string(timeout.count()) + " ms");
    }
    std::this_thread::sleep_for(kPollInterval);
  };
  if (rank == 0) {
    Host host(store, world_size);
    for (host.look(); !host.missing().empty(); host.look()) wait(host.missing());
    return host.attempt();
  }
  const std::string word = new_word();
  store.set(key("hello", rank), word);
  while (true) {
    const auto answer = read(store, key("welcome", rank));
    if (answer && answer->starts_with(word + " ")) {
      const std::string attempt = answer->substr(word.size() + 1);
      store.set(key("thanks", rank), attempt);
      return attempt;
    }
    wait({0});
  }
}

}  // namespace tupelo
