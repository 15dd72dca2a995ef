// Ranks that find each other over TCP, as torchrun and launchers like it start them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "distributed/backends.h"

namespace tupelo {

// What such a launcher tells a process (https://docs.pytorch.org/docs/stable/elastic/run.html).
struct RankPlace {
  int rank = 0;                 // RANK
  int world_size = 1;           // WORLD_SIZE
  int local_rank = 0;           // LOCAL_RANK
  std::string address;          // MASTER_ADDR
  std::uint16_t port = 0;       // MASTER_PORT
  bool store_is_there = false;  // TORCHELASTIC_USE_AGENT_STORE: the launcher keeps the store

  // Whether such a launcher started this process as one of several: RANK is set, and WORLD_SIZE to
  // something other than 1.
  static bool is_told();
  // Whether torchrun started it (TORCHELASTIC_RUN_ID), whatever else started torchrun.
  static bool is_told_by_torchrun();
  // Throws std::invalid_argument that names a variable which is missing or out of range.
  static RankPlace from_environment();
};

// The ranks' common store of keys: kept by the launcher, or else by rank 0, which listens on
// `address` and no other. Texts and small tensors travel through it; for those of training there is
// NCCL.
class Rendezvous {
 public:
  // Collective; blocks until rank 0 can be reached. Throws CommunicationError that names the
  // address.
  Rendezvous(const RankPlace& place, std::chrono::milliseconds timeout);
  // Where rank 0 keeps the store, it waits for the others' ends, for 10 s at most.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;

  const RankPlace& place() const;
  // Tensors on the CPU; each collective is done when its call returns. All ranks make their
  // communicators in the same order; the first time rank 0 waits for all, and they for it, since a
  // store that a launcher keeps also knows what ranks said that it started before. The rendezvous
  // must outlive them. Throws CommunicationTimeout that names who has not come, CommunicationError
  // when the store fails.
  std::unique_ptr<Communicator> make_communicator(const CommunicatorOptions& options);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tupelo
