// The worlds that a suite runs over: local_world.cpp, mpi_world.cpp and nccl_world.cpp each define
// these functions, and a test program is linked with one of them.
#pragma once

#include <torch/types.h>

#include <functional>
#include <vector>

#include "distributed/backends.h"

namespace tupelo::testing {

// World sizes that this program can form.
std::vector<int> world_sizes();

torch::Device test_device();

// Runs `body` on every rank of a world that nothing has failed in: on a thread each, or on this
// rank of an mpirun job. An exception of any rank is thrown on.
void on_every_rank(int world_size, const std::function<void(Communicator&)>& body);

}  // namespace tupelo::testing
