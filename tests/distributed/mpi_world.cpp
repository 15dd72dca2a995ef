// Defined for each way in which the mpi backend moves bytes (TUPELO_TEST_ROUTE).
#include <gtest/gtest.h>

#include <string>

#include "tests/distributed/mpi_main.h"
#include "tests/distributed/placements.h"
#include "tests/distributed/world_under_test.h"

namespace tupelo::testing {

std::vector<int> world_sizes() { return {mpi_runtime().world_size()}; }

torch::Device test_device() { return torch::kCPU; }

void on_every_rank(int world_size, const std::function<void(Communicator&)>& body) {
  constexpr Route kRoute = Route::TUPELO_TEST_ROUTE;
  const Placement one_host(static_cast<std::size_t>(world_size), 0);
  const auto placements = kRoute == Route::kHierarchical ? few_placements_of(world_size)
                                                         : std::vector<Placement>{one_host};
  for (const auto& placement : placements) {
    SCOPED_TRACE("hosts of ranks: " + describe(placement));
    const auto communicator = make_mpi_communicator(
        mpi_runtime(),
        {.timeout = std::chrono::seconds(60), .route = kRoute, .host_of_rank = placement});
    body(*communicator);
  }
}

}  // namespace tupelo::testing
