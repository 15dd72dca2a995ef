// A process that no launcher started, and what a build without CUDA answers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "distributed/backends.h"
#include "distributed/runtime.h"

namespace tupelo {
namespace {

class SoloRuntime : public ::testing::Test {
 protected:
  SoloRuntime() {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "SLURM_LAUNCH_NODE_IPADDR",
          "SLURM_STEP_NUM_TASKS", "RANK", "WORLD_SIZE"}) {
      unsetenv(name);
    }
  }
};

TEST_F(SoloRuntime, IsAWorldOfOneWithoutMpi) {
  const Runtime runtime;
  EXPECT_FALSE(Runtime::started_by_launcher());
  EXPECT_FALSE(runtime.is_initialized());
  EXPECT_EQ(runtime.rank(), 0);
  EXPECT_EQ(runtime.world_size(), 1);
  EXPECT_EQ(runtime.local_rank(), 0);
  EXPECT_EQ(runtime.local_size(), 1);
  ASSERT_EQ(runtime.hosts().size(), 1u);
  EXPECT_FALSE(runtime.hosts().front().empty());
}

TEST_F(SoloRuntime, HasAnMpiCommunicatorOfOne) {
  const Runtime runtime;
  const auto communicator = make_mpi_communicator(runtime);
  EXPECT_EQ(communicator->backend(), "mpi");
  EXPECT_EQ(communicator->world_size(), 1);
  EXPECT_EQ(communicator->sum(2.5), 2.5);
}

TEST_F(SoloRuntime, NcclIsThereOrSaysSo) {
  const Runtime runtime;
  EXPECT_THROW(make_nccl_communicator(runtime, nccl_is_available() ? 1000 : 0),
               std::invalid_argument);
}

TEST_F(SoloRuntime, OnlyTasksOfALauncherCount) {
  setenv("SLURM_STEP_NUM_TASKS", "2", 1);
  EXPECT_FALSE(Runtime::started_by_launcher()) << "a batch script";
  setenv("SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1", 1);
  EXPECT_TRUE(Runtime::started_by_launcher()) << "a task of srun";
  setenv("SLURM_STEP_NUM_TASKS", "1", 1);
  EXPECT_FALSE(Runtime::started_by_launcher()) << "an interactive shell of srun";
  setenv("PMIX_RANK", "0", 1);
  EXPECT_TRUE(Runtime::started_by_launcher());
}

TEST_F(SoloRuntime, RefusesToBeOneOfSeveralWithoutMpi) {
  setenv("RANK", "1", 1);
  EXPECT_EQ(Runtime().world_size(), 1) << "nobody says how many there are";
  setenv("WORLD_SIZE", "1", 1);
  EXPECT_EQ(Runtime().world_size(), 1);
  setenv("WORLD_SIZE", "4", 1);
  try {
    Runtime();
    FAIL() << "four runs would take themselves for the only one";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("mpirun -np 4"), std::string::npos) << error.what();
  }
}

TEST_F(SoloRuntime, NamesTheMpiLibrary) {
  const std::string version = Runtime::library_version();
  EXPECT_GT(version.size(), 3u);
  EXPECT_EQ(version.find_first_of(",\n"), std::string::npos) << version;
}

TEST_F(SoloRuntime, AbortEndsTheProcessWithItsCode) {
  EXPECT_EXIT(Runtime().abort(75), ::testing::ExitedWithCode(75), "");
}

}  // namespace
}  // namespace tupelo
