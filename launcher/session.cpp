#include "launcher/session.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>

#include "distributed/backends.h"
#include "launcher/agreement.h"
#include "launcher/network_choice.h"
#include "launcher/rank_facts.h"

namespace tupelo {
namespace {

const std::map<std::string, Route> kRoutes = {{"auto", Route::kAuto},
                                              {"messages", Route::kMessages},
                                              {"shared", Route::kShared},
                                              {"hierarchical", Route::kHierarchical}};

torch::Device choose_device(const std::string& wanted, const Runtime& runtime) {
  const int devices = static_cast<int>(torch::cuda::device_count());
  if (wanted == "cpu" && runtime.rendezvous() != nullptr) {
    throw std::invalid_argument(
        "device cpu is asked for, but on processors ranks find each other through MPI, and "
        "torchrun or a launcher like it started this process: use mpirun or srun --mpi=pmix");
  }
  if (wanted == "cpu" || (wanted == "auto" && devices == 0)) return torch::kCPU;
  if (devices == 0) {
    throw std::invalid_argument(
        "device cuda is asked for, but this program sees no CUDA device; valid here: auto, cpu");
  }
  // A run by hand on one of several devices is nobody's mistake; a launcher's count is.
  const bool too_few = runtime.world_size() > 1 && runtime.local_size() < devices;
  if (runtime.local_size() > devices || too_few) {
    throw std::invalid_argument(
        "host " + runtime.hosts()[runtime.rank()] + " runs " +
        std::to_string(runtime.local_size()) + " ranks but has " + std::to_string(devices) +
        " CUDA devices that it may see; start one rank per device, name those "
        "to use in CUDA_VISIBLE_DEVICES, and let each rank see all of its "
        "host (under SLURM without --gpu-bind and --gpus-per-task)");
  }
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(runtime.local_rank()));
}

int choose_threads(int wanted, const Runtime& runtime) {
  if (wanted > 0) return wanted;
  if (std::getenv("OMP_NUM_THREADS") != nullptr) return at::get_num_threads();
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return std::max(1, cores / runtime.local_size());
}

// For this thread, and whatever computes from now on.
void use_device(torch::Device device) {
  // float32 means float32 in convolutions, as it does in products.
  at::globalContext().setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV,
                                          at::Float32Precision::IEEE);
  // NCCL since 2.26: what ranks start alike in several communicators also runs alike.
  ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", /*overwrite=*/0);
  c10::impl::VirtualGuardImpl(device.type()).setDevice(device);  // may start threads
}

}  // namespace

Session::Session() : control_(make_host_communicator(runtime_)) {}

void Session::configure(const std::string& device, int threads, int timeout_seconds,
                        const std::string& collectives, const std::string& shard_optimizer) {
  together(*control_, [&] {
    device_ = choose_device(device, runtime_);
    threads_ = choose_threads(threads, runtime_);
  });
  require_same(*control_, runtime_.hosts(),
               {{"the device", device_.is_cuda() ? "cuda" : "cpu",
                 "look at the driver of the host without, or set train.device"}});
  at::set_num_threads(threads_);
  if (device_.is_cuda()) use_device(device_);
  const CommunicatorOptions options{.timeout = std::chrono::seconds(timeout_seconds),
                                    .route = kRoutes.at(collectives)};
  NodeGroups groups;
  shard_optimizer_ = shard_optimizer;
  if (shard_optimizer == "node") {
    together(*control_, [&] {
      groups = node_groups(runtime_.host_of_rank(), runtime_.hosts(), runtime_.rank());
    });
  }
  data_ = make_communicator(options);
  if (groups.neighbours.size() > 1 && groups.peers.size() > 1) {
    CommunicatorOptions part = options;
    part.members = groups.neighbours;
    neighbours_ = make_communicator(part);
    part.members = groups.peers;
    peers_ = make_communicator(part);
  }
}

std::unique_ptr<Communicator> Session::make_communicator(const CommunicatorOptions& options) const {
  if (!device_.is_cuda()) return make_host_communicator(runtime_, options);
  if (runtime_.world_size() == 1) return std::move(make_local_world(1, options).front());
  return make_nccl_communicator(runtime_, device_.index(), options);
}

ShardGroups Session::shard_groups() {
  ShardGroups groups{data()};
  const bool on_one_host = runtime_.local_size() == runtime_.world_size();
  if (neighbours_) {
    groups.shards = neighbours_.get();
    groups.replicas = peers_.get();
  } else if (shard_optimizer_ == "world" || (shard_optimizer_ == "node" && on_one_host)) {
    groups.shards = &data();
  }
  if (groups.shards != nullptr && groups.shards->world_size() == 1) groups.shards = nullptr;
  return groups;
}

ExitCode in_session(const Verb& verb, const std::vector<std::string>& words,
                    const std::function<ExitCode(Session&, const CommandLine&)>& command) {
  choose_network(words);
  Session session;
  try {
    std::optional<CommandLine> line;
    together(session.control(), [&] { line.emplace(verb, words); });
    return command(session, *line);
  } catch (const AgreedError& error) {
    if (session.is_first()) std::cerr << "error: " << printable(error.what()) << std::endl;
    return error.code();
  } catch (const std::exception& error) {
    Runtime& runtime = session.runtime();
    const ExitCode code = exit_code_of(error);
    const bool alone = runtime.world_size() == 1;
    std::cerr << "error: " << (alone ? "" : "rank " + std::to_string(runtime.rank()) + ": ")
              << printable(sentence_of(error)) << std::endl;
    if (!alone) runtime.abort(static_cast<int>(code));
    return code;
  }
}

}  // namespace tupelo
