// How to obtain a Communicator.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "distributed/communicator.h"

namespace tupelo {

class Runtime;

// How the mpi backend moves bytes.
enum class Route {
  // kShared where all ranks are on one host, kHierarchical where some of several hosts have more
  // than one rank, else kMessages. Where no memory can be shared, kMessages as well, and route()
  // says why.
  kAuto,
  // Messages between all ranks. The bits of a sum depend on the world size alone.
  kMessages,
  // Through memory that all ranks share; the bits are those of kMessages.
  kShared,
  // In memory within each host, then between hosts, each rank with one rank of every other host.
  // Sums are taken over the ranks of each host in rank order, then over hosts in the order of
  // their first ranks: their bits depend on the world size and on which ranks share a host. On one
  // host, or with one rank on each, they are those of kMessages.
  kHierarchical
};

struct CommunicatorOptions {
  // How long a collective may take, counted from when this rank takes it up (the mpi and nccl
  // backends work through a queue). A rank that waits for one that waits itself grants it an eighth
  // more, so that the one that knows the culprit speaks first.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  Route route = Route::kAuto;
  // Stands for what the runtime knows of hosts: a number for each rank, the same for ranks that
  // share memory. To see on one host what several would do.
  std::vector<int> host_of_rank = {};
  // The ranks of the runtime that the communicator spans, in this order; empty: all of them. Every
  // rank of the runtime makes such a communicator, of its own group; groups have one size and no
  // rank in common. Groups of the mpi backend send messages whatever `route` says.
  std::vector<int> members = {};
};

// A world inside one process: `world_size` communicators for as many threads. A world of one is an
// ordinary single-process run, takes tensors of any device and never waits. A communicator that is
// destroyed while others wait for it makes them fail at once instead of after the timeout.
std::vector<std::unique_ptr<Communicator>> make_local_world(int world_size,
                                                            CommunicatorOptions options = {});

// Runs the collectives of MPI_COMM_WORLD (a private duplicate of it) on a thread of its own, so
// that they overlap with computation. `runtime` must outlive it. All ranks must create their
// communicators in the same order and with the same options. Tensors must be on the CPU.
//
// Data travels through shared memory or in point-to-point messages and is reduced here, in a
// defined order (Route), so neither the MPI library nor its settings (coll_tuned_*, coll_libnbc_*)
// can change a bit of a result. Settings that matter for speed and safety: btl_tcp_if_include /
// oob_tcp_if_include (the network), oob_tcp_keepalive_* (a lost host). With kMessages every rank
// talks to every other: meant for up to a few hundred ranks.
//
// When a collective fails, `runtime` is told that MPI is broken and will not finalize it. Destroyed
// by an exception, it abandons what is in flight; otherwise it completes it first.
//
// Throws std::invalid_argument for kShared over several hosts, CommunicationError when memory that
// was asked for (kShared, kHierarchical) cannot be shared.
std::unique_ptr<Communicator> make_mpi_communicator(const Runtime& runtime,
                                                    CommunicatorOptions options = {});

// For tensors on the CPU, by whatever way the ranks of `runtime` found each other: MPI, or the
// store of a Rendezvous, which is meant for a few numbers. On the same terms as
// make_mpi_communicator().
std::unique_ptr<Communicator> make_host_communicator(const Runtime& runtime,
                                                     CommunicatorOptions options = {});

// NCCL over the devices `device_index` of the ranks of `runtime`, which is used to hand round the
// NCCL id before anything else runs. Throws std::invalid_argument in a build without CUDA.
//
// Collectives run on a stream of their own, ordered by events after the work that the calling
// thread has queued on its current stream. wait() makes the current stream wait, not the host; a
// watchdog thread keeps the deadlines and aborts NCCL when one passes, and the next call throws.
// For results that are the same bits run after run set NCCL_ALGO to a list without NVLS.
std::unique_ptr<Communicator> make_nccl_communicator(const Runtime& runtime, int device_index,
                                                     CommunicatorOptions options = {});

// True when this build carries the NCCL backend.
bool nccl_is_available();
// "2.30.7"; empty in a build without it.
std::string nccl_version();

}  // namespace tupelo
