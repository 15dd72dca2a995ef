#include "distributed/rendezvous.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "distributed/attempt.h"
#include "distributed/collective.h"
#include "distributed/communication_error.h"
#include "distributed/group.h"
#include "distributed/solo_communicator.h"

namespace tupelo {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::chrono::seconds kFarewellPatience(10);

// Null where it is not set or empty.
const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

int number_from(const char* name, int least, int most) {
  const char* text = environment(name);
  const std::string range = std::to_string(least) + " to " + std::to_string(most);
  if (text == nullptr) {
    throw std::invalid_argument(std::string("RANK and WORLD_SIZE are set, as torchrun does, but ") +
                                name + " is not; valid: " + range);
  }
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 || value < least || value > most) {
    throw std::invalid_argument(std::string(name) + "=" + text +
                                " is out of range; valid: " + range);
  }
  return static_cast<int>(value);
}

// The library's sentence without the trace that it appends.
std::string first_line(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

// A socket that listens on one address; -1 where that is none of this host's.
int listen_on(const RankPlace& place) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(place.address.c_str(), std::to_string(place.port).c_str(), &hints, &found) != 0) {
    return -1;
  }
  int listening = -1;
  for (const addrinfo* each = found; each != nullptr && listening < 0; each = each->ai_next) {
    const int socket = ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(socket, each->ai_addr, each->ai_addrlen) == 0 && ::listen(socket, SOMAXCONN) == 0) {
      listening = socket;
    } else {
      const int failure = errno;
      ::close(socket);
      errno = failure;
    }
  }
  freeaddrinfo(found);
  return listening;
}

// What the ranks of one communicator leave in the store for each other.
class StoreCommunicator : public CollectiveCommunicator {
 public:
  StoreCommunicator(c10::intrusive_ptr<c10d::Store> store, std::string name, Group group,
                    std::chrono::milliseconds timeout)
      : store_(std::move(store)), name_(std::move(name)), group_(group), timeout_(timeout) {}

  std::string backend() const override { return "store"; }
  int rank() const override { return group_.place; }
  int world_size() const override { return group_.size; }

 private:
  std::unique_ptr<Work> start(Collective collective) override {
    if (failure_) std::rethrow_exception(failure_);
    try {
      perform(collective, exchange(describe(collective), contribution(collective)));
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
    ++sequence_;
    return completed_work();
  }

  Bytes contribution(const Collective& collective) const {
    const bool silent =
        collective.kind == CollectiveKind::kBarrier ||
        (collective.kind == CollectiveKind::kBroadcast && collective.root != group_.place);
    if (silent) return {};
    const auto* data = static_cast<const std::uint8_t*>(collective.input.const_data_ptr());
    return Bytes(data, data + collective.input.nbytes());
  }

  std::string key(std::uint64_t sequence, int rank) const {
    return name_ + "/" + std::to_string(sequence) + "/" + std::to_string(rank);
  }

  // Every rank's bytes, by rank.
  std::vector<Bytes> exchange(const std::string& what, const Bytes& mine) {
    std::vector<std::string> keys;
    for (int rank = 0; rank < group_.size; ++rank) keys.push_back(key(sequence_, rank));
    Bytes message(what.begin(), what.end());
    message.push_back('\n');
    message.insert(message.end(), mine.begin(), mine.end());
    try {
      store_->set(keys[static_cast<std::size_t>(group_.place)], message);
      store_->wait(keys, timeout_);
      std::vector<Bytes> all = store_->multiGet(keys);
      // All have come here, so none asks for what was left for the collective before.
      if (sequence_ > 0) store_->deleteKey(key(sequence_ - 1, group_.place));
      for (std::size_t rank = 0; rank < all.size(); ++rank) take_name(what, rank, all[rank]);
      return all;
    } catch (const c10::Error& error) {
      fail(what, keys, first_line(error));
    }
  }

  // Removes what a rank says that it does, which must be what this one does.
  void take_name(const std::string& what, std::size_t rank, Bytes& message) const {
    const auto end = std::find(message.begin(), message.end(), '\n');
    const std::string theirs(message.begin(), end);
    if (theirs != what) {
      throw CommunicationError(where(what) + " failed: ranks issue different collectives: " + what +
                               " here, and " + theirs + " on rank " + std::to_string(rank));
    }
    message.erase(message.begin(), end + 1);
  }

  std::string where(const std::string& what) const {
    return "store " + what + " #" + std::to_string(sequence_) + " on rank " +
           std::to_string(group_.place);
  }

  [[noreturn]] void fail(const std::string& what, const std::vector<std::string>& keys,
                         const std::string& reason) const {
    std::vector<int> missing;
    try {
      for (int rank = 0; rank < group_.size; ++rank) {
        if (!store_->check({keys[static_cast<std::size_t>(rank)]})) missing.push_back(rank);
      }
    } catch (const std::exception&) {
      throw CommunicationError(where(what) + " failed: the ranks' store is gone: " + reason);
    }
    if (missing.empty()) throw CommunicationError(where(what) + " failed: " + reason);
    throw CommunicationTimeout(where(what) + " failed: nothing came from " +
                               describe_ranks(missing) + " within " +
                               std::to_string(timeout_.count()) + " ms");
  }

  void perform(const Collective& collective, const std::vector<Bytes>& all) const {
    if (collective.kind == CollectiveKind::kBarrier) return;
    const std::size_t bytes = collective.output.nbytes();
    auto* output = static_cast<std::uint8_t*>(collective.output.data_ptr());
    const auto place = static_cast<std::size_t>(group_.place);
    switch (collective.kind) {
      case CollectiveKind::kAllReduce:
        return reduce(collective, all, 0);
      case CollectiveKind::kReduceScatter:
        return reduce(collective, all, place * bytes);
      case CollectiveKind::kAllGather:
        for (const Bytes& each : all) output = std::copy(each.begin(), each.end(), output);
        return;
      case CollectiveKind::kBroadcast: {
        const Bytes& root = all[static_cast<std::size_t>(collective.root)];
        std::copy(root.begin(), root.end(), output);
        return;
      }
      case CollectiveKind::kBarrier:
        return;
    }
  }

  static void reduce(const Collective& collective, const std::vector<Bytes>& all,
                     std::size_t from) {
    std::vector<const void*> inputs;
    for (const Bytes& each : all) inputs.push_back(each.data() + from);
    reduce_in_order(inputs, collective.output.data_ptr(), count_of(collective.output),
                    reduction_of(collective));
  }

  c10::intrusive_ptr<c10d::Store> store_;
  const std::string name_;
  const Group group_;
  const std::chrono::milliseconds timeout_;
  std::uint64_t sequence_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

bool RankPlace::is_told() {
  const char* world = environment("WORLD_SIZE");
  return environment("RANK") != nullptr && world != nullptr && std::string(world) != "1";
}

bool RankPlace::is_told_by_torchrun() {
  return environment("RANK") != nullptr && environment("TORCHELASTIC_RUN_ID") != nullptr;
}

RankPlace RankPlace::from_environment() {
  constexpr int kMostRanks = 1 << 20, kMostPort = 65535;
  RankPlace place;
  place.world_size = number_from("WORLD_SIZE", 1, kMostRanks);
  place.rank = number_from("RANK", 0, place.world_size - 1);
  place.local_rank = number_from("LOCAL_RANK", 0, place.rank);
  place.port = static_cast<std::uint16_t>(number_from("MASTER_PORT", 1, kMostPort));
  const char* address = environment("MASTER_ADDR");
  if (address == nullptr) {
    throw std::invalid_argument(
        "RANK and WORLD_SIZE are set, as torchrun does, but MASTER_ADDR is not; valid: the name or "
        "address of the host of rank 0");
  }
  place.address = address;
  const char* kept = environment("TORCHELASTIC_USE_AGENT_STORE");
  place.store_is_there = kept != nullptr && std::string(kept) == "True";
  return place;
}

struct Rendezvous::State {
  RankPlace place;
  c10::intrusive_ptr<c10d::Store> store;
  std::string attempt;  // empty before ranks have agreed on it
  int communicators = 0;
  int exceptions_at_start = std::uncaught_exceptions();

  bool keeps_store() const { return place.rank == 0 && !place.store_is_there; }
  std::string farewell(int rank) const {
    return "tupelo/" + attempt + "/farewell/" + std::to_string(rank);
  }
  // Whoever is slower still reads what was exchanged last.
  void wait_for_others() {
    std::vector<std::string> keys;
    for (int rank = 1; rank < place.world_size; ++rank) keys.push_back(farewell(rank));
    store->wait(keys, kFarewellPatience);
  }
};

Rendezvous::Rendezvous(const RankPlace& place, std::chrono::milliseconds timeout)
    : state_(std::make_unique<State>()) {
  state_->place = place;
  const std::string where = place.address + ":" + std::to_string(place.port);
  c10d::TCPStoreOptions options;
  options.port = place.port;
  options.isServer = state_->keeps_store();
  options.waitWorkers = false;
  options.timeout = timeout;
  if (options.isServer) {
    const int listening = listen_on(place);
    if (listening < 0) {
      throw CommunicationError("rank 0 cannot listen on " + where +
                               " (MASTER_ADDR, MASTER_PORT): " + std::strerror(errno));
    }
    options.masterListenFd = listening;
  }
  try {
    state_->store = c10::make_intrusive<c10d::TCPStore>(place.address, options);
  } catch (const c10::Error& error) {
    throw CommunicationError("rank " + std::to_string(place.rank) + " does not reach rank 0 at " +
                             where + " (MASTER_ADDR, MASTER_PORT): " + first_line(error));
  }
}

Rendezvous::~Rendezvous() {
  const bool is_orderly =
      !state_->attempt.empty() && std::uncaught_exceptions() <= state_->exceptions_at_start;
  if (!is_orderly || state_->place.store_is_there || state_->place.world_size == 1) return;
  try {
    if (state_->keeps_store()) {
      state_->wait_for_others();
    } else {
      state_->store->set(state_->farewell(state_->place.rank), "");
    }
  } catch (const std::exception&) {  // a rank has failed, and says so itself
  }
}

const RankPlace& Rendezvous::place() const { return state_->place; }

std::unique_ptr<Communicator> Rendezvous::make_communicator(const CommunicatorOptions& options) {
  Group group{state_->place.rank, state_->place.world_size};
  if (state_->attempt.empty()) {
    try {
      state_->attempt = agree_on_attempt(*state_->store, group.place, group.size, options.timeout);
    } catch (const c10::Error& error) {
      throw CommunicationError("rank " + std::to_string(group.place) +
                               ": the ranks' store failed: " + first_line(error));
    }
  }
  std::string name = "tupelo/" + state_->attempt + "/" + std::to_string(state_->communicators++);
  if (!options.members.empty()) {
    group = Group::of(options.members, state_->place.rank);
    name += "/of " + std::to_string(options.members.front());
  }
  if (group.size == 1) return make_solo_communicator("store");
  return std::make_unique<StoreCommunicator>(state_->store, name, group, options.timeout);
}

}  // namespace tupelo
