// Lifetime of MPI in this process.
#pragma once

#include <string>
#include <vector>

namespace tupelo {

// RAII: initializes MPI with MPI_THREAD_MULTIPLE and finalizes it. One object per process, ever.
// When the process was not started by mpirun or srun this is a world of one, and MPI is not
// initialized at all.
class MpiRuntime {
 public:
  // Throws CommunicationError when the MPI library offers less than MPI_THREAD_MULTIPLE.
  MpiRuntime();
  ~MpiRuntime();
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;

  // Whether this process was started by an MPI launcher (Open MPI, PMIx, SLURM environment).
  static bool started_by_launcher();

  bool is_initialized() const { return initialized_; }
  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  // Rank among the processes of this host, from 0.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  // Host name of each rank, by rank.
  const std::vector<std::string>& hosts() const { return hosts_; }

  // Ends every rank of the job with `exit_code`. Does not return.
  [[noreturn]] void abort(int exit_code) const;

 private:
  bool initialized_ = false;
  int rank_ = 0;
  int world_size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
  std::vector<std::string> hosts_;
};

}  // namespace tupelo
