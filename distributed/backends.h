// How to obtain a Communicator.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "distributed/communicator.h"

namespace tupelo {

class MpiRuntime;

struct CommunicatorOptions {
  // How long a collective may take, counted from when this rank takes it up (the mpi and nccl
  // backends work through a queue).
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
};

// A world inside one process: `world_size` communicators for as many threads. A world of one is an
// ordinary single-process run, takes tensors of any device and never waits. A communicator that is
// destroyed while others wait for it makes them fail at once instead of after the timeout.
std::vector<std::unique_ptr<Communicator>> make_local_world(int world_size,
                                                            CommunicatorOptions options = {});

// Runs the collectives of MPI_COMM_WORLD (a private duplicate of it) on a thread of its own, so
// that they overlap with computation. `runtime` must outlive it. All ranks must create their
// communicators in the same order. Tensors must be on the CPU.
//
// Data travels in point-to-point messages and is reduced here, in rank order, so neither the MPI
// library nor its settings (coll_tuned_*, coll_libnbc_*) can change a bit of a result. Settings
// that matter for speed and safety: btl_tcp_if_include / oob_tcp_if_include (the network),
// oob_tcp_keepalive_* (a lost host), btl_vader_single_copy_mechanism (shared memory). Every rank
// talks to every other: meant for up to a few hundred ranks.
//
// When a collective fails, `runtime` is told that MPI is broken and will not finalize it. Destroyed
// by an exception, it abandons what is in flight; otherwise it completes it first.
std::unique_ptr<Communicator> make_mpi_communicator(const MpiRuntime& runtime,
                                                    CommunicatorOptions options = {});

// NCCL over the devices `device_index` of the ranks of `runtime`, which is used to hand round the
// NCCL id before anything else runs. Throws std::invalid_argument in a build without CUDA.
//
// Collectives run on a stream of their own, ordered by events after the work that the calling
// thread has queued on its current stream. wait() makes the current stream wait, not the host; a
// watchdog thread keeps the deadlines and aborts NCCL when one passes, and the next call throws.
// For results that are the same bits run after run set NCCL_ALGO to a list without NVLS.
std::unique_ptr<Communicator> make_nccl_communicator(const MpiRuntime& runtime, int device_index,
                                                     CommunicatorOptions options = {});

// True when this build carries the NCCL backend.
bool nccl_is_available();

}  // namespace tupelo
