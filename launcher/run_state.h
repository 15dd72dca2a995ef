// The small state of a run that a checkpoint carries beside its tensors.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/bad_shard.h"
#include "data/masker.h"
#include "data/sample_order.h"
#include "launcher/run_config.h"
#include "launcher/update_settings.h"

namespace tupelo {

// What was consumed of an epoch so far: order-independent, see row_hash() in data/batch_stream.h.
struct EpochCount {
  std::uint64_t rows = 0;
  std::uint64_t hash = 0;
};
using EpochCounts = std::map<std::uint64_t, EpochCount>;  // by epoch

// A bad shard that a run goes on without.
struct ExcludedShard {
  ShardName shard;
  std::string reason;     // the error that it was left out for
  std::int64_t step = 0;  // the last one before it was left out
  std::uint64_t documents = 0, tokens = 0;

  bool operator==(const ExcludedShard&) const = default;
};

struct RunState {
  // What the run is: a checkpoint of a different run is refused.
  std::string config_ini;     // the resolved configuration
  std::string position_plan;  // canonical text
  std::uint32_t vocab_size = 0;
  std::uint32_t pad_id = 0;
  std::string tokenizer_fingerprint;
  // Of each corpus of the mixture.
  std::vector<std::string> corpus_digests;
  std::vector<std::string> corpora;  // folders
  // Where it stands.
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  std::int64_t skipped_steps = 0;
  int mask_law = kMaskLaw;  // see data/masker.h; 1 where a checkpoint does not say
  double seconds = 0;       // of training, over all starts
  double step_seconds = 0;  // of the last steps, each; 0 = not known
  std::optional<CooldownSpan>
      cooldown;                       // as train.max-time made it begin; part of the run from then
  std::int64_t average_updates = 0;   // of the average of the weights
  double loss_scale = 0;              // of the last steps in fp16; 0 = there were none
  std::int64_t loss_scale_steps = 0;  // since it changed
  std::uint64_t masks_hash = 0;       // wrapping sum of Batch::masks_hash over all ranks and steps
  std::vector<EpochCounts> epochs;    // of each corpus, unfinished ones only
  std::vector<ExcludedShard> excluded_shards;
  OrderStart order_start;  // of the order of rows that the run is in
  // Of one that took over at `step`; not known of runs of before.
  std::optional<OrderStart> next_order;
  std::int64_t frozen_position_steps = 0;  // what the setting came to
  // What bits depend on beyond the above; a difference is worth a warning.
  int world_size = 1;
  int threads = 1;
  std::string torch_version;
  std::string cpu_capability;
};

// As to_json() writes it.
nlohmann::ordered_json excluded_json(const ExcludedShard& excluded);
std::string to_json(const RunState& state);
// Throws CorruptCheckpoint that names the field.
RunState run_state_from_json(const std::string& text);

// The configuration that a checkpoint was written with.
RunConfig config_of(const RunState& state);

// Throws std::invalid_argument naming both values when `current` cannot continue `saved`: another
// position plan, model shape, vocabulary, corpus, or anything that decides which sample comes when
// and what is masked of it; or when its cool-down should have begun before the step where it
// stands.
void require_same_run(const RunState& saved, const RunState& current);

// A sentence for each difference that changes the last bits of a continued run, though not its
// correctness; empty when there is none.
std::string bit_differences(const RunState& saved, const RunState& current);

}  // namespace tupelo
