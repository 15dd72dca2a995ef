// A collective as the backends see it: checked once, in one place, before anything is sent.
// Internal to distributed/.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "distributed/communicator.h"
#include "distributed/reduction.h"

namespace tupelo {

enum class CollectiveKind { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kBarrier };

struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  // What this rank contributes and what it receives; the same tensor where the collective is in
  // place, none for a barrier.
  torch::Tensor input;
  torch::Tensor output;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
};

// "all_reduce(sum) of 5 Float", for messages and to compare what ranks ask for.
std::string describe(const Collective& collective);

// A collective's memory and arithmetic, for code that knows no tensors.
std::byte* bytes_of(const torch::Tensor& tensor);
std::size_t count_of(const torch::Tensor& tensor);
Reduction reduction_of(const Collective& collective);

// One way of performing collectives.
class CollectiveEngine {
 public:
  virtual ~CollectiveEngine() = default;
  // Blocks until the result is in place. After it threw, neither the collective's tensors nor the
  // engine may be freed, since messages may still arrive.
  virtual void run(const Collective& collective) = 0;
};

// "rank 3", "ranks 1, 3"
std::string describe_ranks(const std::vector<int>& ranks);

// A Communicator whose backend supplies one function.
class CollectiveCommunicator : public Communicator {
 public:
  std::unique_ptr<Work> all_reduce(torch::Tensor tensor, ReduceOp op) final;
  std::unique_ptr<Work> reduce_scatter(torch::Tensor output, torch::Tensor input,
                                       ReduceOp op) final;
  std::unique_ptr<Work> all_gather(torch::Tensor output, torch::Tensor input) final;
  std::unique_ptr<Work> broadcast(torch::Tensor tensor, int root) final;
  using Communicator::broadcast;
  void barrier() override;

 protected:
  virtual std::unique_ptr<Work> start(Collective collective) = 0;
  virtual bool accepts(torch::Device tensor_device) const { return tensor_device.is_cpu(); }

 private:
  void check_tensor(const torch::Tensor& tensor, const char* call) const;
  void check_slices(const torch::Tensor& whole, const torch::Tensor& slice, const char* call) const;
};

// The handle of something that is done already.
std::unique_ptr<Work> completed_work();

}  // namespace tupelo
