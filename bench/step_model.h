// How long a training step takes, from the work of each layer, the buckets of the GradientReducer
// and the order in which collectives leave. Pure arithmetic: no clock, no tensors.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/fabric_model.h"

namespace tupelo::bench {

// Work of a forward pass, and the parameters that it is the last in backward to give gradients.
struct Operation {
  double forward_seconds = 0;            // of one micro-batch
  std::vector<std::int64_t> parameters;  // elements of each tensor, in the model's order
};

// What waits for all its parameters before it begins (RobertaForMaskedLm::before_use).
struct Layer {
  std::vector<Operation> operations;  // in forward order
};

enum class Shard { kNone, kNode, kWorld };
// As train.shard-optimizer spells them.
const std::vector<std::pair<std::string, Shard>>& shard_names();
std::string name_of(Shard shard);

struct StepSettings {
  int ranks = 1;
  int micro_batches = 1;  // all but the last accumulate and send nothing
  Shard shard = Shard::kNone;
  bool overlap = true;            // of reduction with the last backward
  bool overlap_gather = true;     // of the gather with the next forward
  double backward_factor = 2;     // time of an operation's backward over its forward
  double bucket_bytes = 4 << 20;  // of gradients at 4 bytes an element, as train.bucket-bytes
  double wire_bytes = 4;          // that an element's gradient travels in
  double parameter_bytes = 4;     // that an element is gathered in
  double update_seconds = 0;      // of this rank's share
  int agreements = 3;             // sums of a few numbers over all ranks, which nothing hides
  Algorithm algorithm = Algorithm::kBest;
};

struct StepTime {
  double compute_seconds = 0;         // forward and backward of all micro-batches
  double exposed_reduce_seconds = 0;  // after backward, until the last bucket has arrived
  double exposed_gather_seconds = 0;  // that the next forward waits for parameters
  double update_seconds = 0;
  double agreement_seconds = 0;
  double communication_seconds = 0;  // of all collectives, hidden or not
  std::size_t buckets = 0;

  double exposed_seconds() const {
    return exposed_reduce_seconds + exposed_gather_seconds + agreement_seconds;
  }
  double seconds() const { return compute_seconds + update_seconds + exposed_seconds(); }
};

// A bucket as the reducer lays it out: tensors from last to first, closed before the one that would
// make it larger than bucket_bytes.
struct Bucket {
  double elements = 0;
  double ready_seconds = 0;     // after backward began: its last gradient is there
  std::size_t first_layer = 0;  // that it holds parameters of: the first in need of it
};
std::vector<Bucket> buckets_of(const std::vector<Layer>& layers, double backward_factor,
                               double bucket_bytes);

// When each of some jobs ends that are done one after the other, in this order, each no earlier
// than it is ready. Vectors of one length.
std::vector<double> queue_ends(const std::vector<double>& ready_seconds,
                               const std::vector<double>& job_seconds);

// A step that is one of many alike, from publish to publish: the gather of what the update before
// it changed runs into its first forward pass. Layers are never empty.
StepTime predict_step(const std::vector<Layer>& layers, const Fabric& fabric,
                      const StepSettings& settings);

}  // namespace tupelo::bench
