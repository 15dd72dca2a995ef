#include "distributed/attempt.h"

#include <algorithm>
#include <random>
#include <vector>

#include "distributed/collective.h"
#include "distributed/communication_error.h"

namespace tupelo {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How long rank 0 waits for thanks before it looks for ranks that were started anew.
constexpr milliseconds kPatience(200);

std::string new_word() {
  std::random_device random;
  return std::to_string(random()) + "-" + std::to_string(random());
}

std::string hello(int rank) { return "tupelo/hello/" + std::to_string(rank); }
// Of one word, so that no other's answer can be taken for it.
std::string welcome(const std::string& word) { return "tupelo/welcome/" + word; }
std::string thanks(const std::string& attempt, int rank) {
  return "tupelo/" + attempt + "/thanks/" + std::to_string(rank);
}

class Handshake {
 public:
  Handshake(c10d::Store& store, int rank, int world_size, milliseconds timeout)
      : store_(store),
        rank_(rank),
        world_size_(world_size),
        timeout_(timeout),
        deadline_(Clock::now() + timeout) {}

  std::string as_host() {
    const std::string attempt = new_word();
    std::vector<std::string> hellos, all_thanks;
    for (int rank = 1; rank < world_size_; ++rank) {
      hellos.push_back(hello(rank));
      all_thanks.push_back(thanks(attempt, rank));
    }
    require(hellos, 1);
    std::vector<std::string> answered(hellos.size());
    do {
      const auto words = store_.multiGet(hellos);
      for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string word(words[i].begin(), words[i].end());
        if (word != answered[i]) store_.set(welcome(word), attempt);
        answered[i] = word;
      }
      if (come(all_thanks, kPatience)) return attempt;
    } while (Clock::now() < deadline_);
    require(all_thanks, 1);
    return attempt;
  }

  std::string as_guest() {
    const std::string word = new_word();
    store_.set(hello(rank_), word);
    require({welcome(word)}, 0);
    const std::string attempt = store_.get_to_str(welcome(word));
    store_.set(thanks(attempt, rank_), "");
    return attempt;
  }

 private:
  // Whether all keys are there within `patience`.
  bool come(const std::vector<std::string>& keys, milliseconds patience) {
    const auto end = Clock::now() + patience;
    try {
      store_.wait(keys, std::max(milliseconds(1), patience));
      return true;
    } catch (const c10::Error&) {
      if (Clock::now() < end) throw;  // not the time, but the store
      return false;
    }
  }

  // What ranks from `first` on set, in their order.
  void require(const std::vector<std::string>& keys, int first) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now());
    if (come(keys, std::max(milliseconds(0), left))) return;
    std::vector<int> missing;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!store_.check({keys[i]})) missing.push_back(first + static_cast<int>(i));
    }
    throw CommunicationTimeout("meeting at the store on rank " + std::to_string(rank_) +
                               " failed: nothing came from " + describe_ranks(missing) +
                               " within " + std::to_string(timeout_.count()) + " ms");
  }

  c10d::Store& store_;
  const int rank_;
  const int world_size_;
  const milliseconds timeout_;
  const Clock::time_point deadline_;
};

}  // namespace

std::string agree_on_attempt(c10d::Store& store, int rank, int world_size, milliseconds timeout) {
  Handshake handshake(store, rank, world_size, timeout);
  return rank == 0 ? handshake.as_host() : handshake.as_guest();
}

}  // namespace tupelo
