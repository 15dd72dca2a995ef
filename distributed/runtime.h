// How the ranks of a job find each other, and how a rank leaves.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace tupelo {

class Rendezvous;
struct RankPlace;

// RAII: initializes MPI with MPI_THREAD_MULTIPLE and finalizes it. One object per process, ever.
// Started by torchrun or a launcher like it, on devices that NCCL serves, ranks meet at a
// Rendezvous instead. Else the process is a world of one. In both cases MPI is not initialized at
// all.
//
// MPI_Finalize waits for every rank, so it is called only at an orderly end. Destroyed by an
// exception, the runtime ends the job as abort(1) does, since peers may sit in a collective that
// waits for this rank. After mark_broken() it leaves MPI alone: the launcher sees the process end
// without MPI_Finalize and ends the others.
class Runtime {
 public:
  // Throws CommunicationError when the MPI library offers less than MPI_THREAD_MULTIPLE, or when it
  // sees a world of one although the launcher started more (srun with the wrong --mpi plug-in);
  // std::invalid_argument when the environment is that of torchrun (RANK, WORLD_SIZE), but there is
  // no device for NCCL or the environment is not complete.
  Runtime();
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Whether this process was started by an MPI launcher (OMPI_COMM_WORLD_SIZE, PMIX_RANK, PMI_RANK,
  // or a SLURM step of several tasks). A batch script or an interactive shell is not.
  static bool started_by_launcher();

  // Name and version of the MPI library, on one line.
  static std::string library_version();

  // Whether ranks talk through MPI.
  bool is_initialized() const { return initialized_; }
  // Where they do not; else null.
  Rendezvous* rendezvous() const { return rendezvous_.get(); }
  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  // Rank among the processes of this host, from 0.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  // Host name of each rank, by rank.
  const std::vector<std::string>& hosts() const { return hosts_; }
  // By rank: the first rank of its host, as the launcher counts hosts (names of hosts may not be
  // unique).
  const std::vector<int>& host_of_rank() const { return host_of_rank_; }

  // Ends every rank of the job with `exit_code`. Does not return.
  [[noreturn]] void abort(int exit_code) const;

  // Records that a collective failed and messages are still in flight, so that MPI can no longer be
  // finalized. Any thread may call it.
  void mark_broken() const { broken_ = true; }

 private:
  void meet(const RankPlace& place);

  bool initialized_ = false;
  std::unique_ptr<Rendezvous> rendezvous_;
  int rank_ = 0;
  int world_size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
  std::vector<std::string> hosts_;
  std::vector<int> host_of_rank_ = {0};
  mutable std::atomic<bool> broken_ = false;
  int exceptions_at_start_ = 0;
};

}  // namespace tupelo
