// What the ranks of a host work in together. Internal to distributed/.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "distributed/mpi_exchange.h"
#include "distributed/shared_memory.h"
#include "distributed/topology.h"

namespace tupelo {

// Every rank of a host (a member, by its place there) owns some buffers that all of them can read:
// deposits, for what it brings in, and results, for what it has combined. A collective is cut into
// chunks, which go through up to three stages on each member: deposit, combine what all have
// deposited, take what others have combined. A member may be a few chunks ahead of another one, as
// many as there are buffers; counters of the chunks that each has done tell when a stage may begin,
// so that nobody waits for more than it needs and no collective ends with a barrier.
class SharedWindow {
 public:
  struct Chunk {
    std::size_t index = 0;     // in its collective, from 0
    std::uint64_t number = 0;  // in the window's life
  };

  struct Stages {
    std::size_t chunks = 0;
    std::function<void(Chunk)> deposit;
    std::function<void(Chunk)> combine;
    // Nothing where what is combined goes to the member itself.
    std::function<void(Chunk)> take;
    // The members, from the first, whose results are taken, and whether they may be waiting for
    // other hosts.
    int combiners = 0;
    Patience::Wait wait_for_combiners = Patience::Wait::kForTheCulprit;
  };

  // Collective over all ranks, under the clock that `patience` has begun: a window on each host,
  // or, where any rank fails to get its own, none anywhere and in `refusal` the same reason
  // everywhere. `patience` must outlive the window. Deposits and results hold `chunk_bytes` each.
  static std::unique_ptr<SharedWindow> open(MpiExchange& exchange, const Topology& topology,
                                            std::size_t chunk_bytes, const Patience& patience,
                                            std::string& refusal);

  // Performs the collective that `patience` has begun. Throws CommunicationTimeout, naming the
  // ranks that did not get there, and CommunicationError when one is in another collective.
  void run(const Stages& stages);

  int members() const { return static_cast<int>(memories_.size()); }
  std::size_t chunk_bytes() const { return chunk_bytes_; }
  std::byte* deposit(int member, Chunk chunk) const;
  std::byte* result(int member, Chunk chunk) const;

 private:
  // What a member counts, in chunks.
  enum class Done { kDeposit, kCombine, kTake };
  struct Counters;

  SharedWindow(std::vector<SharedMemory> memories, const Topology& topology,
               std::size_t chunk_bytes, const Patience& patience);

  Counters& counters(int member) const;
  std::atomic<std::uint64_t>& counter(int member, Done done) const;
  char* name(int member, Chunk chunk) const;
  void post(Done done, Chunk chunk);
  // Until the first `members` have done `chunks` of the window's life.
  void await(Done done, std::uint64_t chunks, int members, const char* missing,
             Patience::Wait wait) const;
  void await_free_buffer(Done done, Chunk chunk) const;
  void deposit_one(const Stages& stages, Chunk chunk);
  void combine_one(const Stages& stages, Chunk chunk);
  void take_one(const Stages& stages, Chunk chunk);
  void write_name(Chunk chunk);
  void check_names(Chunk chunk) const;

  std::vector<SharedMemory> memories_;  // by place
  std::vector<int> ranks_;              // by place
  int own_;
  std::size_t chunk_bytes_;
  const Patience& patience_;
  std::uint64_t next_chunk_ = 0;
};

}  // namespace tupelo
