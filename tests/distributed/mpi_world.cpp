#include "tests/distributed/mpi_main.h"
#include "tests/distributed/world_under_test.h"

namespace tupelo::testing {

std::vector<int> world_sizes() { return {mpi_runtime().world_size()}; }

torch::Device test_device() { return torch::kCPU; }

void on_every_rank(int, const std::function<void(Communicator&)>& body) {
  const auto communicator =
      make_mpi_communicator(mpi_runtime(), {.timeout = std::chrono::seconds(60)});
  body(*communicator);
}

}  // namespace tupelo::testing
