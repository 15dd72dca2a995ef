// Under mpirun: what Runtime says against what Open MPI told the process.
#include "distributed/runtime.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "tests/distributed/mpi_main.h"

namespace tupelo {
namespace {

int environment(const char* name) { return std::atoi(std::getenv(name)); }

TEST(Runtime, KnowsItsPlace) {
  const auto& runtime = testing::mpi_runtime();
  EXPECT_TRUE(Runtime::started_by_launcher());
  EXPECT_TRUE(runtime.is_initialized());
  EXPECT_EQ(runtime.rank(), environment("OMPI_COMM_WORLD_RANK"));
  EXPECT_EQ(runtime.world_size(), environment("OMPI_COMM_WORLD_SIZE"));
  EXPECT_EQ(runtime.local_rank(), environment("OMPI_COMM_WORLD_LOCAL_RANK"));
  EXPECT_EQ(runtime.local_size(), environment("OMPI_COMM_WORLD_LOCAL_SIZE"));
}

TEST(Runtime, KnowsTheHostOfEveryRank) {
  const auto& runtime = testing::mpi_runtime();
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  ASSERT_EQ(runtime.hosts().size(), static_cast<std::size_t>(runtime.world_size()));
  for (const auto& host : runtime.hosts()) EXPECT_EQ(host, name.data());
}

}  // namespace
}  // namespace tupelo
