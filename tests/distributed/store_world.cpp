#include "tests/distributed/store_ranks.h"
#include "tests/distributed/world_under_test.h"

namespace tupelo::testing {

std::vector<int> world_sizes() { return {1, 2, 3, 4}; }

torch::Device test_device() { return torch::kCPU; }

void on_every_rank(int world_size, const std::function<void(Communicator&)>& body) {
  for (const auto& failure : run_store_ranks(world_size, [&](Rendezvous& rendezvous) {
         const auto communicator =
             rendezvous.make_communicator({.timeout = std::chrono::seconds(60)});
         body(*communicator);
       })) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace tupelo::testing
