#include "launcher/held_out_probe.h"

#include <nlohmann/json.hpp>

#include "launcher/device_batch.h"
#include "launcher/evaluation.h"

namespace tupelo {
namespace {

using nlohmann::ordered_json;

// Takes the observer back whatever happens.
class Observing {
 public:
  Observing(RobertaForMaskedLm& model, AttentionObserver& observer) : model_(model) {
    model_.observe(&observer);
  }
  ~Observing() { model_.observe(nullptr); }
  Observing(const Observing&) = delete;
  Observing& operator=(const Observing&) = delete;

 private:
  RobertaForMaskedLm& model_;
};

ordered_json direction_json(const BiasRange& range, const HeldOutProbe& probe) {
  // Numbers that do not exist, of encodings without a bias of the distance, are null.
  return {{"min", range.least},
          {"max", range.most},
          {"covered", probe.longest_sequence > 1},
          {"farthest_covered", probe.longest_sequence - 1}};
}

}  // namespace

HeldOutProbe probe_held_out(RobertaForMaskedLm& model, const ShardedCorpus& corpus,
                            const DataOptions& data, torch::Device device) {
  const torch::NoGradGuard no_gradients;
  const EvaluationMode mode(model);
  const Batch batch = held_out_batch(corpus, data, data.micro_batch);
  AttentionProbe observer(model);
  {
    const Observing observing(model, observer);
    masked_lm_loss(model, batch, device);
  }
  HeldOutProbe probe;
  probe.rows = static_cast<std::int64_t>(batch.rows.size());
  probe.tokens = batch.tokens;
  probe.longest_sequence = observer.longest_sequence();
  probe.layers = observer.layers();
  probe.groups = probe_groups(model, data.sequence_length);
  for (const LayerProbe& layer : probe.layers) {
    probe.encodings.push_back(
        layer.group < 0 ? "none" : probe.groups[static_cast<std::size_t>(layer.group)].encoding);
  }
  return probe;
}

std::map<std::string, double> held_out_gradient_norms(RobertaForMaskedLm& model,
                                                      const ShardedCorpus& corpus,
                                                      const DataOptions& data,
                                                      torch::Device device) {
  const EvaluationMode mode(model);
  const Batch batch = held_out_batch(corpus, data, data.micro_batch);
  model.zero_grad();
  const torch::Tensor loss = masked_lm_loss(model, batch, device).loss_sum;
  (loss / static_cast<double>(std::max<std::int64_t>(batch.labels.numel(), 1))).backward();
  return position_gradient_norms(model);
}

ordered_json probe_json(const HeldOutProbe& probe) {
  ordered_json layers = ordered_json::array();
  for (std::size_t i = 0; i < probe.layers.size(); ++i) {
    const LayerProbe& layer = probe.layers[i];
    ordered_json paths;
    for (std::size_t path = 0; path < kScorePaths; ++path) {
      const PathStatistics& statistics = layer.paths[path];
      paths[kScorePathNames[path]] = {{"mean", statistics.mean},
                                      {"variance", statistics.variance},
                                      {"max", statistics.largest}};
    }
    layers.push_back({{"layer", i},
                      {"group", layer.group},
                      {"encoding", probe.encodings[i]},
                      {"paths", paths},
                      {"entropy", layer.entropy},
                      {"relative_entropy", layer.relative_entropy}});
  }
  ordered_json groups = ordered_json::array();
  for (std::size_t i = 0; i < probe.groups.size(); ++i) {
    const GroupProbe& group = probe.groups[i];
    groups.push_back({{"group", i},
                      {"encoding", group.encoding},
                      {"layers", group.layers},
                      {"bias_to_left", direction_json(group.to_left, probe)},
                      {"bias_to_right", direction_json(group.to_right, probe)}});
  }
  return {{"rows", probe.rows},
          {"tokens", probe.tokens},
          {"longest_sequence", probe.longest_sequence},
          {"layers", layers},
          {"groups", groups}};
}

}  // namespace tupelo
