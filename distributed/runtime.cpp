#include "distributed/runtime.h"

#include <torch/cuda.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string_view>

#include "distributed/backends.h"
#include "distributed/mpi_check.h"
#include "distributed/rendezvous.h"

namespace tupelo {
namespace {

constexpr std::size_t kHostNameBytes = 65;  // of Linux, with the zero at the end

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

// Without a device that NCCL serves, ranks need MPI.
void require_devices() {
  if (nccl_is_available() && torch::cuda::is_available()) return;
  const std::string rank = std::getenv("RANK"), world = std::getenv("WORLD_SIZE");
  throw std::invalid_argument(
      "RANK=" + rank + " and WORLD_SIZE=" + world +
      " say that torchrun or a launcher like it started this process, but " +
      (nccl_is_available() ? "this host has no CUDA device" : "this is a build without CUDA") +
      ", and on processors ranks find each other through MPI: start them with mpirun -np " + world +
      " tupelo ... or srun --mpi=pmix -n " + world +
      " tupelo ...; to run alone, unset RANK and WORLD_SIZE");
}

using HostName = std::array<char, kHostNameBytes>;  // ends with zeros

HostName own_host() {
  HostName name{};
  gethostname(name.data(), name.size() - 1);
  return name;
}

std::vector<std::string> gather_hosts(int world_size) {
  HostName name = own_host();
  std::vector<HostName> names(static_cast<std::size_t>(world_size));
  check_mpi(MPI_Allgather(name.data(), kHostNameBytes, MPI_CHAR, names.data(), kHostNameBytes,
                          MPI_CHAR, MPI_COMM_WORLD),
            "MPI_Allgather");
  std::vector<std::string> hosts;
  for (const HostName& each : names) hosts.emplace_back(each.data());
  return hosts;
}

// What ranks that meet at a store tell each other.
struct Introduction {
  int first_rank = 0;  // of the rank's host
  HostName host{};
};

std::vector<Introduction> exchange(Communicator& communicator, Introduction own) {
  std::vector<Introduction> all(static_cast<std::size_t>(communicator.world_size()));
  const auto bytes_of = [](Introduction* first, std::size_t count) {
    return torch::from_blob(first, {static_cast<std::int64_t>(count * sizeof(Introduction))},
                            torch::kUInt8);
  };
  communicator.all_gather(bytes_of(all.data(), all.size()), bytes_of(&own, 1))->wait();
  return all;
}

std::vector<int> gather_first_ranks(MPI_Comm host, int rank, int world_size) {
  int first = rank;
  check_mpi(MPI_Bcast(&first, 1, MPI_INT, 0, host), "MPI_Bcast");
  std::vector<int> all(static_cast<std::size_t>(world_size));
  check_mpi(MPI_Allgather(&first, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD),
            "MPI_Allgather");
  return all;
}

}  // namespace

bool Runtime::started_by_launcher() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(variable) != nullptr) return true;
  }
  return slurm_step_tasks() > 1;
}

std::string Runtime::library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view whole(text.data(), static_cast<std::size_t>(length));
  // Open MPI appends who built it, MPICH its whole configuration.
  return std::string(whole.substr(0, whole.find_first_of(",\n")));
}

Runtime::Runtime() : exceptions_at_start_(std::uncaught_exceptions()) {
  // torchrun's processes inherit what srun or mpirun told torchrun itself.
  const bool by_launcher = started_by_launcher() && !RankPlace::is_told_by_torchrun();
  if (!by_launcher) {
    if (RankPlace::is_told()) {
      require_devices();
      meet(RankPlace::from_environment());
    } else {
      hosts_.emplace_back(own_host().data());
    }
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
  host_of_rank_ = gather_first_ranks(host, rank_, world_size_);
  MPI_Comm_free(&host);
  hosts_ = gather_hosts(world_size_);
  initialized_ = true;
}

void Runtime::meet(const RankPlace& place) {
  rank_ = place.rank;
  world_size_ = place.world_size;
  local_rank_ = place.local_rank;
  const CommunicatorOptions options;
  rendezvous_ = std::make_unique<Rendezvous>(place, options.timeout);
  const auto communicator = rendezvous_->make_communicator(options);
  // Ranks of a host follow each other, its first one at local rank 0.
  host_of_rank_.clear();
  for (const Introduction& each : exchange(*communicator, {rank_ - local_rank_, own_host()})) {
    hosts_.emplace_back(each.host.data());
    host_of_rank_.push_back(each.first_rank);
  }
  local_size_ =
      static_cast<int>(std::count(host_of_rank_.begin(), host_of_rank_.end(), rank_ - local_rank_));
}

Runtime::~Runtime() {
  if (!initialized_) return;
  if (std::uncaught_exceptions() > exceptions_at_start_) abort(1);
  if (!broken_) MPI_Finalize();
}

void Runtime::abort(int exit_code) const {
  std::fflush(nullptr);
  if (initialized_) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace tupelo
