// The ranks and the device that a command works with.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "distributed/backends.h"
#include "distributed/communicator.h"
#include "distributed/runtime.h"
#include "launcher/command_line.h"
#include "launcher/exit_codes.h"
#include "launcher/shard_groups.h"

namespace tupelo {

// Starts MPI when the process was started by mpirun or srun; else a world of one.
class Session {
 public:
  Session();

  Runtime& runtime() { return runtime_; }
  // CPU collectives, there from the start: agreement on configuration and errors.
  Communicator& control() { return *control_; }
  // Collectives for training on the chosen device: the control communicator on a CPU, NCCL on CUDA
  // where there are several ranks.
  Communicator& data() { return data_ ? *data_ : *control_; }
  // Who shares the optimizer's state, as train.shard-optimizer says.
  ShardGroups shard_groups();
  torch::Device device() const { return device_; }
  int threads() const { return threads_; }
  bool is_first() const { return runtime_.rank() == 0; }

  // Chooses the device ("auto", "cpu", "cuda"), the number of computing threads (0 = by cores and
  // ranks of the host), the deadline of collectives, their way on the CPU (train.collectives) and
  // who shares the optimizer's state (train.shard-optimizer). A CUDA device becomes this thread's
  // current one. Collective. Throws std::invalid_argument.
  void configure(const std::string& device, int threads, int timeout_seconds,
                 const std::string& collectives = "auto",
                 const std::string& shard_optimizer = "none");

 private:
  std::unique_ptr<Communicator> make_communicator(const CommunicatorOptions& options) const;

  Runtime runtime_;
  std::unique_ptr<Communicator> control_;
  std::unique_ptr<Communicator> data_;
  std::string shard_optimizer_ = "none";
  std::unique_ptr<Communicator> neighbours_, peers_;  // of shards by node
  torch::Device device_ = torch::kCPU;
  int threads_ = 1;
};

// Opens a session, reads the command line and runs `command` in it; turns what is thrown into one
// sentence on standard error and an exit code. An error that all ranks agreed on is printed once
// and lets every rank leave by the front door; one that only this rank knows of ends the whole job,
// since the others may wait for it in a collective.
ExitCode in_session(const Verb& verb, const std::vector<std::string>& words,
                    const std::function<ExitCode(Session&, const CommandLine&)>& command);

}  // namespace tupelo
