// Collectives over the ranks of a run, whichever way their bytes travel.
#pragma once

#include <torch/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "distributed/communication_error.h"
#include "distributed/reduce_op.h"

namespace tupelo {

// Handle of a collective in flight. The tensors given to the collective must not be touched until
// wait() returned. Destroying an unfinished handle does not cancel the collective.
class Work {
 public:
  virtual ~Work() = default;
  virtual bool is_completed() const = 0;
  // Returns when the result is in place (on CUDA: when the current stream may use it). Throws
  // CommunicationError or CommunicationTimeout.
  virtual void wait() = 0;
};

// Every rank must issue the same collectives in the same order. One thread per rank may call.
// Tensors must be contiguous and of a supported dtype: float32, float64, bfloat16, float16, int32,
// int64, uint8. A broken contract (dtype, contiguity, device, size, root) is a c10::Error, thrown
// before anything was sent; what goes wrong on a device is one as well, thrown at any time.
//
// The local and mpi backends reduce in a defined order, the 16-bit types in float32 with one
// rounding at the end: their results are the same bits, run after run. The order is that of ranks,
// unless mpi is told to go host by host (Route in backends.h).
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::string backend() const = 0;  // "local", "mpi", "nccl"
  // How bytes travel, for people: "mpi through shared memory".
  virtual std::string route() const { return backend(); }
  // Whether wait() makes a device's stream wait and not the host, so that collectives end at
  // moments that the host does not see.
  virtual bool is_asynchronous() const { return false; }
  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  // In place: every rank ends with the reduction over ranks of `tensor`.
  virtual std::unique_ptr<Work> all_reduce(torch::Tensor tensor, ReduceOp op = ReduceOp::kSum) = 0;
  // input [world_size * n] -> output [n]: rank r receives the reduction of everybody's slice r.
  virtual std::unique_ptr<Work> reduce_scatter(torch::Tensor output, torch::Tensor input,
                                               ReduceOp op = ReduceOp::kSum) = 0;
  // input [n] -> output [world_size * n], slices in rank order.
  virtual std::unique_ptr<Work> all_gather(torch::Tensor output, torch::Tensor input) = 0;
  virtual std::unique_ptr<Work> broadcast(torch::Tensor tensor, int root) = 0;
  virtual void barrier() = 0;

  // Blocking helpers for a few host numbers, built on all_reduce.
  double sum(double value);
  double max(double value);
  std::vector<double> sum(std::vector<double> values);
  // Sums modulo 2^64.
  std::uint64_t sum(std::uint64_t value);
  // True when `value` is true on every rank / on at least one rank.
  bool all_agree(bool value);
  bool any(bool value);
  // Rank `root`'s string, on every rank.
  std::string broadcast(std::string text, int root);

 protected:
  // Device that the small tensors of the helpers live on.
  virtual torch::Device device() const { return torch::kCPU; }
  // Called by the helpers once a result was read on the host. A backend that works asynchronously
  // to the host throws here when it failed in the meantime.
  virtual void check_health() {}
};

}  // namespace tupelo
