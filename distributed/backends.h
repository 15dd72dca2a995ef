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
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
};

// A world inside one process: `world_size` communicators for as many threads. A world of one is an
// ordinary single-process run.
std::vector<std::unique_ptr<Communicator>> make_local_world(int world_size,
                                                            CommunicatorOptions options = {});

// Runs the collectives of MPI_COMM_WORLD (a private duplicate of it) on a thread of its own, so that
// they overlap with computation. `runtime` must outlive it.
std::unique_ptr<Communicator> make_mpi_communicator(const MpiRuntime& runtime,
                                                    CommunicatorOptions options = {});

// NCCL over the devices `device_index` of the ranks of `runtime`, which is used to hand round the
// NCCL id. Throws std::invalid_argument in a build without CUDA.
std::unique_ptr<Communicator> make_nccl_communicator(const MpiRuntime& runtime, int device_index,
                                                     CommunicatorOptions options = {});

// True when this build carries the NCCL backend.
bool nccl_is_available();

}  // namespace tupelo
