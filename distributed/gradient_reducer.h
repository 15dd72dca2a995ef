// Sums gradients over ranks while backward is still running.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "distributed/communicator.h"

namespace tupelo {

struct GradientReducerOptions {
  std::size_t bucket_bytes = 4u << 20;
  // Each rank ends with the sums of its own slice of every bucket alone (ZeRO: Rajbhandari et al.,
  // 2020), which moves half the bytes; see ParameterShards.
  bool scatter = false;
  // The 16-bit type in which float32 buckets travel; the ranks' values are rounded to it, summed in
  // float32 and rounded once more (by nccl at every rank on the way). Undefined: as they are.
  at::ScalarType wire = at::ScalarType::Undefined;
  // With `scatter`: the ranks that own the same slice in other groups, over which sums go on, so
  // that slices are the sums of all. Outlives the reducer. (Of 16-bit buckets the sums of a group
  // are rounded to 16 bits on their way to the others.)
  Communicator* replicas = nullptr;
};

struct GradientBucket;

// Owns flat, contiguous gradient buckets; the `.grad` of every parameter is a view of its bucket,
// so that one collective per bucket reduces many parameters and the optimizer can work on flat
// tensors. Parameters are placed in reverse order, since backward reaches the last ones first. A
// bucket leaves as soon as its last gradient was accumulated in the last micro-batch's backward.
//
// Reduces by sum, never by mean: the loss of each micro-batch is divided by the step's global count
// of masked tokens before backward, so that the sum over ranks is the exact gradient.
//
// Buckets are sent in the same order on every rank whatever order backward finishes them in. A
// parameter that received no gradient counts as zero, and its bucket leaves in finish(). Not
// thread-safe: one owner per rank.
//
// Gradients stay views only as long as they are accumulated in place: backward without
// create_graph, and zero() rather than resetting `.grad`. finish() checks it.
//
// Gradients of 16-bit parameters are accumulated over micro-batches in float32: each is added to
// its bucket as it arrives, and `.grad` is undefined between backward passes.
class GradientReducer {
 public:
  // `parameters` must be leaves that require gradients, each once, and be the same list on every
  // rank. Gradients that they already have are dropped. `communicator` must outlive the reducer.
  GradientReducer(std::vector<torch::Tensor> parameters, Communicator& communicator,
                  GradientReducerOptions options = {});
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Sets all gradients to zero. Call before the first micro-batch of a step.
  void zero();
  // Whether the backward that follows may send buckets: true for the last micro-batch of a step.
  // Covers one call of backward; a gradient that arrives after its bucket has left is a c10::Error.
  void overlap(bool enabled);
  // Sends what has not left yet and waits for everything. Gradients are then the sums over ranks,
  // in this rank's slices if they are scattered.
  void finish();

  const std::vector<torch::Tensor>& parameters() const;
  const GradientReducerOptions& options() const;
  std::size_t bucket_count() const;
  // The flat gradient buckets themselves, in the order in which they leave.
  std::vector<torch::Tensor> buckets() const;
  // Where each gradient lies; internal to distributed/.
  const std::vector<GradientBucket>& layout() const;
  // Seconds that finish() of the last step spent on what had not left or not arrived yet: the
  // exposed communication time. (On CUDA the host does not wait there, so it is close to zero.)
  double exposed_seconds() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tupelo
