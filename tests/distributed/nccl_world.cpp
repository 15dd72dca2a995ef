#include "tests/distributed/mpi_main.h"
#include "tests/distributed/world_under_test.h"

namespace tupelo::testing {

std::vector<int> world_sizes() { return {mpi_runtime().world_size()}; }

torch::Device test_device() {
  return {torch::kCUDA, static_cast<torch::DeviceIndex>(mpi_runtime().local_rank())};
}

// Communicators are slow to make and to end on several devices, and the suite has some hundred
// worlds: one serves them all, unless it has failed.
void on_every_rank(int, const std::function<void(Communicator&)>& body) {
  thread_local std::unique_ptr<Communicator> kept;
  auto communicator = std::move(kept);
  if (!communicator) {
    communicator = make_nccl_communicator(mpi_runtime(), mpi_runtime().local_rank(),
                                          {.timeout = std::chrono::seconds(60)});
  }
  body(*communicator);
  kept = std::move(communicator);  // an exception destroys it, which aborts what is in flight
}

}  // namespace tupelo::testing
