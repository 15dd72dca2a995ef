#include "bench/step_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tupelo::bench {
namespace {

double forward_seconds(const Layer& layer) {
  double seconds = 0;
  for (const Operation& operation : layer.operations) seconds += operation.forward_seconds;
  return seconds;
}

double forward_seconds(const std::vector<Layer>& layers) {
  double seconds = 0;
  for (const Layer& layer : layers) seconds += forward_seconds(layer);
  return seconds;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Ranks that hold slices together, and those that hold the same slice.
struct Groups {
  Group shards, replicas;
};

Groups groups_of(const Fabric& fabric, const StepSettings& settings) {
  if (settings.shard == Shard::kNode) {
    return {host_group(settings.ranks, fabric), replica_group(settings.ranks, fabric)};
  }
  return {world_group(settings.ranks, fabric), {}};
}

class Schedule {
 public:
  Schedule(const std::vector<Layer>& layers, const Fabric& fabric, const StepSettings& settings)
      : layers_(layers),
        fabric_(fabric),
        settings_(settings),
        groups_(groups_of(fabric, settings)),
        buckets_(buckets_of(layers, settings.backward_factor, settings.bucket_bytes)),
        forward_(forward_seconds(layers)),
        backward_(settings.backward_factor * forward_) {}

  StepTime step() {
    StepTime time;
    time.compute_seconds = settings_.micro_batches * (forward_ + backward_);
    time.exposed_reduce_seconds = reduce();
    if (settings_.shard != Shard::kNone) time.exposed_gather_seconds = gather();
    time.update_seconds = settings_.update_seconds;
    const double numbers = 64;  // bytes
    time.agreement_seconds =
        settings_.agreements *
        seconds_of(Collective::kAllReduce, world_group(settings_.ranks, fabric_), numbers);
    time.communication_seconds = communication_ + time.agreement_seconds;
    time.buckets = buckets_.size();
    return time;
  }

 private:
  double seconds_of(Collective collective, const Group& group, double bytes) const {
    return collective_seconds(collective, group, bytes, fabric_, settings_.algorithm);
  }

  // Elements that travel: filled up to a multiple of the ranks that share a bucket.
  double filled(const Bucket& bucket) const {
    if (settings_.shard == Shard::kNone) return bucket.elements;
    const double ranks = groups_.shards.ranks();
    return std::ceil(bucket.elements / ranks) * ranks;
  }

  std::vector<double> queue(const std::vector<double>& ready, const std::vector<double>& jobs) {
    communication_ += sum(jobs);
    return queue_ends(ready, jobs);
  }

  // How long after backward the last sum is there.
  double reduce() {
    const bool scatters = settings_.shard != Shard::kNone;
    std::vector<double> ready, jobs, onward;
    for (const Bucket& bucket : buckets_) {
      const double bytes = filled(bucket) * settings_.wire_bytes;
      ready.push_back(settings_.overlap ? bucket.ready_seconds : backward_);
      jobs.push_back(seconds_of(scatters ? Collective::kReduceScatter : Collective::kAllReduce,
                                groups_.shards, bytes));
      onward.push_back(
          seconds_of(Collective::kAllReduce, groups_.replicas, bytes / groups_.shards.ranks()));
    }
    // Slices go on to the other hosts over links of their own, while the next ones are scattered.
    const std::vector<double> scattered = queue(ready, jobs);
    const std::vector<double> arrived = queue(scattered, onward);
    return std::max(0.0, arrived.back() - backward_);
  }

  // How much longer than its work the forward pass takes that waits for parameters: those that it
  // needs first, in the last buckets, come first.
  double gather() {
    std::vector<double> jobs;
    for (std::size_t i = buckets_.size(); i-- > 0;) {
      jobs.push_back(seconds_of(Collective::kAllGather, groups_.shards,
                                filled(buckets_[i]) * settings_.parameter_bytes));
    }
    const std::vector<double> ends = queue(std::vector<double>(jobs.size(), 0.0), jobs);
    if (!settings_.overlap_gather) return ends.back();
    double now = 0;
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      for (std::size_t i = 0; i < buckets_.size(); ++i) {
        if (buckets_[i].first_layer == layer) now = std::max(now, ends[buckets_.size() - 1 - i]);
      }
      now += forward_seconds(layers_[layer]);
    }
    return std::max(0.0, now - forward_);
  }

  const std::vector<Layer>& layers_;
  const Fabric& fabric_;
  const StepSettings& settings_;
  const Groups groups_;
  const std::vector<Bucket> buckets_;
  const double forward_, backward_;
  double communication_ = 0;
};

}  // namespace

const std::vector<std::pair<std::string, Shard>>& shard_names() {
  static const std::vector<std::pair<std::string, Shard>> names{
      {"none", Shard::kNone}, {"node", Shard::kNode}, {"world", Shard::kWorld}};
  return names;
}

std::string name_of(Shard shard) {
  const auto& names = shard_names();
  return std::find_if(names.begin(), names.end(),
                      [shard](const auto& each) { return each.second == shard; })
      ->first;
}

std::vector<Bucket> buckets_of(const std::vector<Layer>& layers, double backward_factor,
                               double bucket_bytes) {
  constexpr double kBytesPerElement = 4;  // gradients are float32 whatever the parameters are
  std::vector<Bucket> buckets;
  double now = 0;
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    const auto& operations = layers[layer].operations;
    for (std::size_t i = operations.size(); i-- > 0;) {
      now += backward_factor * operations[i].forward_seconds;
      const auto& tensors = operations[i].parameters;
      for (auto elements = tensors.rbegin(); elements != tensors.rend(); ++elements) {
        const double more = static_cast<double>(*elements);
        if (buckets.empty() || (buckets.back().elements + more) * kBytesPerElement > bucket_bytes) {
          buckets.push_back({0, 0, layer});
        }
        buckets.back().elements += more;
        buckets.back().ready_seconds = now;
        buckets.back().first_layer = layer;
      }
    }
  }
  return buckets;
}

std::vector<double> queue_ends(const std::vector<double>& ready_seconds,
                               const std::vector<double>& job_seconds) {
  std::vector<double> ends;
  double free = 0;
  for (std::size_t i = 0; i < ready_seconds.size(); ++i) {
    free = std::max(free, ready_seconds[i]) + job_seconds[i];
    ends.push_back(free);
  }
  return ends;
}

StepTime predict_step(const std::vector<Layer>& layers, const Fabric& fabric,
                      const StepSettings& settings) {
  return Schedule(layers, fabric, settings).step();
}

}  // namespace tupelo::bench
