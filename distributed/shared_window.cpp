#include "distributed/shared_window.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

namespace tupelo {
namespace {

// A member that is ahead deposits a chunk while others combine the one before and take the one
// before that; one more for those who were held up.
constexpr std::size_t kBuffers = 4;
constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kNameBytes = 192;
// Counters and names come first.
constexpr std::size_t kHeadBytes = 4096;
// Kind of the messages that create a window, beside those of the collectives.
constexpr int kCreationKind = 7;

constexpr std::size_t memory_bytes(std::size_t chunk_bytes) {
  return kHeadBytes + 2 * kBuffers * chunk_bytes;
}

using Sentence = std::array<char, 256>;

Sentence sentence_of(const std::exception& error) {
  Sentence text{};
  std::strncpy(text.data(), error.what(), text.size() - 1);
  return text;
}

// `mine` to each of `ranks`, and theirs, by place in `ranks`.
template <typename T>
std::vector<T> swap_with(MpiExchange& exchange, const std::vector<int>& ranks, const T& mine) {
  auto sent = std::make_unique<T>(mine);
  auto all = std::make_unique<std::vector<T>>(ranks.size(), mine);
  std::vector<MpiMessage> sends;
  std::vector<MpiMessage> receives;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == exchange.rank()) continue;
    sends.push_back({ranks[i], sent.get(), sizeof(T)});
    receives.push_back({ranks[i], &(*all)[i], sizeof(T)});
  }
  try {
    exchange.exchange(sends, receives);
  } catch (...) {
    // Messages may still arrive.
    static_cast<void>(sent.release());
    static_cast<void>(all.release());
    throw;
  }
  return std::move(*all);
}

// The memory of each neighbour, by place.
std::vector<SharedMemory> attach_all(const std::vector<SharedMemory::Address>& addresses,
                                     SharedMemory own, int own_place) {
  std::vector<SharedMemory> memories;
  for (std::size_t place = 0; place < addresses.size(); ++place) {
    if (static_cast<int>(place) == own_place) {
      memories.push_back(std::move(own));
    } else {
      memories.emplace_back(addresses[place]);
    }
  }
  return memories;
}

}  // namespace

struct SharedWindow::Counters {
  struct alignas(kCacheLine) Counter {
    std::atomic<std::uint64_t> chunks;
  };
  std::array<Counter, 3> done;
  std::array<std::array<char, kNameBytes>, kBuffers> names;
};

std::unique_ptr<SharedWindow> SharedWindow::open(MpiExchange& exchange, const Topology& topology,
                                                 std::size_t chunk_bytes, const Patience& patience,
                                                 std::string& refusal) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  static_assert(sizeof(Counters) <= kHeadBytes);
  exchange.begin(kCreationKind);
  Sentence problem{};
  std::optional<SharedMemory> own;
  try {
    own.emplace(memory_bytes(chunk_bytes));
  } catch (const std::exception& error) {
    problem = sentence_of(error);
  }
  const auto addresses =
      swap_with(exchange, topology.neighbours(), own ? own->address() : SharedMemory::Address{});
  const bool all_have = std::all_of(addresses.begin(), addresses.end(),
                                    [](const auto& address) { return address.bytes > 0; });
  std::vector<SharedMemory> memories;
  if (all_have) {
    try {
      memories = attach_all(addresses, std::move(*own), topology.own_place());
    } catch (const std::exception& error) {
      problem = sentence_of(error);
    }
  }
  std::vector<int> everybody;
  for (int rank = 0; rank < topology.world_size(); ++rank) everybody.push_back(rank);
  const auto problems = swap_with(exchange, everybody, problem);
  for (std::size_t rank = 0; rank < problems.size(); ++rank) {
    if (problems[rank][0] == '\0') continue;
    refusal = "rank " + std::to_string(rank);
    refusal += std::string(" ") + problems[rank].data();
    return nullptr;
  }
  memories[static_cast<std::size_t>(topology.own_place())].close_address();
  return std::unique_ptr<SharedWindow>(
      new SharedWindow(std::move(memories), topology, chunk_bytes, patience));
}

SharedWindow::SharedWindow(std::vector<SharedMemory> memories, const Topology& topology,
                           std::size_t chunk_bytes, const Patience& patience)
    : memories_(std::move(memories)),
      ranks_(topology.neighbours()),
      own_(topology.own_place()),
      chunk_bytes_(chunk_bytes),
      patience_(patience) {}

// The memory came as zeros, which is what counters begin with.
SharedWindow::Counters& SharedWindow::counters(int member) const {
  return *reinterpret_cast<Counters*>(memories_[static_cast<std::size_t>(member)].data());
}

std::atomic<std::uint64_t>& SharedWindow::counter(int member, Done done) const {
  return counters(member).done[static_cast<std::size_t>(done)].chunks;
}

char* SharedWindow::name(int member, Chunk chunk) const {
  return counters(member).names[chunk.number % kBuffers].data();
}

std::byte* SharedWindow::deposit(int member, Chunk chunk) const {
  return memories_[static_cast<std::size_t>(member)].data() + kHeadBytes +
         (chunk.number % kBuffers) * chunk_bytes_;
}

std::byte* SharedWindow::result(int member, Chunk chunk) const {
  return deposit(member, chunk) + kBuffers * chunk_bytes_;
}

// Stage by stage a chunk later, so that others have had the time of a chunk to get there.
void SharedWindow::run(const Stages& stages) {
  const std::uint64_t first = next_chunk_;
  next_chunk_ += stages.chunks;
  const auto chunk = [&](std::size_t index) { return Chunk{index, first + index}; };
  const std::size_t lag = stages.take ? 2 : 1;
  for (std::size_t i = 0; stages.chunks > 0 && i < stages.chunks + lag; ++i) {
    if (i < stages.chunks) deposit_one(stages, chunk(i));
    if (i >= 1 && i - 1 < stages.chunks) combine_one(stages, chunk(i - 1));
    if (stages.take && i >= 2) take_one(stages, chunk(i - 2));
  }
}

void SharedWindow::deposit_one(const Stages& stages, Chunk chunk) {
  await_free_buffer(Done::kCombine, chunk);
  write_name(chunk);
  stages.deposit(chunk);
  post(Done::kDeposit, chunk);
}

void SharedWindow::combine_one(const Stages& stages, Chunk chunk) {
  await(Done::kDeposit, chunk.number + 1, members(), "nothing came from rank",
        Patience::Wait::kForTheCulprit);
  check_names(chunk);
  await_free_buffer(Done::kTake, chunk);
  stages.combine(chunk);
  post(Done::kCombine, chunk);
  if (!stages.take) post(Done::kTake, chunk);
}

void SharedWindow::take_one(const Stages& stages, Chunk chunk) {
  const bool is_direct = stages.wait_for_combiners == Patience::Wait::kForTheCulprit;
  await(Done::kCombine, chunk.number + 1, stages.combiners,
        is_direct ? "nothing came from rank" : "nothing came by way of rank",
        stages.wait_for_combiners);
  stages.take(chunk);
  post(Done::kTake, chunk);
}

void SharedWindow::post(Done done, Chunk chunk) {
  counter(own_, done).store(chunk.number + 1, std::memory_order_release);
}

void SharedWindow::await(Done done, std::uint64_t chunks, int members, const char* missing,
                         Patience::Wait wait) const {
  int arrived = 0;
  const auto all_arrived = [&] {
    while (arrived < members && counter(arrived, done).load(std::memory_order_acquire) >= chunks) {
      ++arrived;
    }
    return arrived == members;
  };
  const auto who = [&] {
    std::string text = missing;
    const char* separator = " ";
    for (int member = 0; member < members; ++member) {
      if (counter(member, done) >= chunks) continue;
      text += separator + std::to_string(ranks_[static_cast<std::size_t>(member)]);
      separator = ", ";
    }
    return text;
  };
  patience_.wait_until(all_arrived, who, wait);
}

// Until nobody needs the chunk that was in this chunk's buffer before.
void SharedWindow::await_free_buffer(Done done, Chunk chunk) const {
  if (chunk.number < kBuffers) return;
  await(done, chunk.number + 1 - kBuffers, members(), "nothing was taken by rank",
        Patience::Wait::kForOneWhoWaits);
}

void SharedWindow::write_name(Chunk chunk) {
  const std::string text = patience_.name() + " #" + std::to_string(patience_.sequence());
  std::strncpy(name(own_, chunk), text.c_str(), kNameBytes - 1);
}

void SharedWindow::check_names(Chunk chunk) const {
  for (int member = 0; member < members(); ++member) {
    if (std::strncmp(name(member, chunk), name(own_, chunk), kNameBytes) == 0) continue;
    throw CommunicationError(patience_.where() + " failed: rank " +
                             std::to_string(ranks_[static_cast<std::size_t>(member)]) + " is at " +
                             name(member, chunk) + ", so it is in another collective");
  }
}

}  // namespace tupelo
