#include "distributed/mpi_runtime.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "distributed/mpi_check.h"

namespace tupelo {
namespace {

constexpr std::size_t kHostNameBytes = 256;

int number_from(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

// SLURM describes the allocation to batch scripts too; only srun sets these two for its tasks.
int slurm_step_tasks() {
  return std::getenv("SLURM_LAUNCH_NODE_IPADDR") == nullptr ? 0
                                                            : number_from("SLURM_STEP_NUM_TASKS");
}

int launched_tasks() {
  if (const int tasks = number_from("OMPI_COMM_WORLD_SIZE"); tasks > 0) return tasks;
  if (const int tasks = number_from("PMI_SIZE"); tasks > 0) return tasks;
  return slurm_step_tasks();
}

std::vector<std::string> gather_hosts(int world_size) {
  std::array<char, kHostNameBytes> name{};
  gethostname(name.data(), name.size() - 1);
  std::vector<char> names(kHostNameBytes * static_cast<std::size_t>(world_size));
  check_mpi(MPI_Allgather(name.data(), kHostNameBytes, MPI_CHAR, names.data(), kHostNameBytes,
                          MPI_CHAR, MPI_COMM_WORLD),
            "MPI_Allgather");
  std::vector<std::string> hosts;
  for (std::size_t at = 0; at < names.size(); at += kHostNameBytes) hosts.emplace_back(&names[at]);
  return hosts;
}

}  // namespace

bool MpiRuntime::started_by_launcher() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(variable) != nullptr) return true;
  }
  return slurm_step_tasks() > 1;
}

MpiRuntime::MpiRuntime() : exceptions_at_start_(std::uncaught_exceptions()) {
  if (!started_by_launcher()) {
    std::array<char, kHostNameBytes> name{};
    gethostname(name.data(), name.size() - 1);
    hosts_.emplace_back(name.data());
    return;
  }
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size_);
  const int launched = launched_tasks();
  if (provided < MPI_THREAD_MULTIPLE || (world_size_ == 1 && launched > 1)) {
    MPI_Finalize();
    throw CommunicationError(
        provided < MPI_THREAD_MULTIPLE
            ? "this MPI library does not offer MPI_THREAD_MULTIPLE"
            : "the launcher started " + std::to_string(launched) +
                  " processes, but MPI sees a world of one: under SLURM use srun --mpi=pmix");
  }
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host),
            "MPI_Comm_split_type");
  MPI_Comm_rank(host, &local_rank_);
  MPI_Comm_size(host, &local_size_);
  MPI_Comm_free(&host);
  hosts_ = gather_hosts(world_size_);
  initialized_ = true;
}

MpiRuntime::~MpiRuntime() {
  if (!initialized_) return;
  if (std::uncaught_exceptions() > exceptions_at_start_) abort(1);
  if (!broken_) MPI_Finalize();
}

void MpiRuntime::abort(int exit_code) const {
  std::fflush(nullptr);
  if (initialized_) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace tupelo
