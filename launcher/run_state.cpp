#include "launcher/run_state.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "checkpoints/safetensors.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

using nlohmann::json;

// Keys that decide what a run computes. Others (validation, logging, how the global batch is split,
// how long the run is) may change between two starts.
constexpr std::array kFixedKeys = {"model.layers",
                                   "model.hidden-size",
                                   "model.heads",
                                   "model.intermediate-size",
                                   "model.max-positions",
                                   "model.layer-norm-epsilon",
                                   "model.input-position",
                                   "model.logn",
                                   "model.logn-length",
                                   "model.mask-decoder",
                                   "data.sequence-length",
                                   "data.length-ramp",
                                   "train.batch-ramp",
                                   "data.packing",
                                   "data.length-bins",
                                   "data.mixture",
                                   "data.masking",
                                   "data.mask-unit",
                                   "data.span-probability",
                                   "data.span-words",
                                   "data.ngram-words",
                                   "data.longest-word-tokens",
                                   "data.mask-fraction",
                                   "data.mask-token-share",
                                   "data.random-token-share",
                                   "objective.sop-weight",
                                   "objective.sop-pairs",
                                   "train.global-batch",
                                   "train.seed",
                                   "optim.optimizer",
                                   "optim.flavour"};

std::string entry_value(const RunConfig& config, const std::string& name) {
  for (const ConfigEntry& entry : config_entries()) {
    if (entry.name == name) return entry.get(config);
  }
  throw std::logic_error("no configuration entry " + name);
}

std::string joined(const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& part : texts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

void require_equal(const std::string& what, const std::string& saved, const std::string& current) {
  if (saved == current) return;
  throw std::invalid_argument("the checkpoint was written with " + what + " '" + saved +
                              "', this run has '" + current +
                              "'; use the same value, or another --run folder");
}

// A cool-down that only now is asked for, or asked for elsewhere, must lie ahead: else the rate
// would jump to its middle.
void require_cooldown_ahead(const RunState& saved, const RunConfig& saved_config,
                            const RunConfig& current_config) {
  const CooldownSpan before = cooldown_span(saved_config), now = cooldown_span(current_config);
  if (saved.cooldown || now.steps == 0 || now == before || now.begin >= saved.step) return;
  throw std::invalid_argument(
      "optim.cooldown " + current_config.optim.cooldown + " of train.steps " +
      std::to_string(current_config.train.steps) + " begins at step " + std::to_string(now.begin) +
      ", but the run is at step " + std::to_string(saved.step) +
      " already; set train.steps to the sum of that and the steps of the cool-down");
}

json json_of(const OrderStart& start) {
  return {{"step", start.step}, {"epochs", start.epochs}, {"epochs_before", start.epochs_before}};
}

OrderStart order_start_from(const json& object, std::size_t corpora) {
  OrderStart start;
  object.at("step").get_to(start.step);
  object.at("epochs").get_to(start.epochs);
  object.at("epochs_before").get_to(start.epochs_before);
  if (!start.epochs.empty() && start.epochs.size() != corpora) {
    throw std::invalid_argument("an order of rows does not have an epoch of each corpus");
  }
  return start;
}

ExcludedShard excluded_shard_from(const json& object) {
  ExcludedShard excluded;
  object.at("corpus_digest").get_to(excluded.shard.corpus_digest);
  object.at("file").get_to(excluded.shard.file);
  object.at("reason").get_to(excluded.reason);
  object.at("step").get_to(excluded.step);
  object.at("documents").get_to(excluded.documents);
  object.at("tokens").get_to(excluded.tokens);
  return excluded;
}

// Runs of before had none of these.
void read_rows(const json& object, RunState& state) {
  if (!object.contains("order_start")) return;
  state.order_start = order_start_from(object.at("order_start"), state.corpora.size());
  if (object.contains("next_order")) {
    state.next_order = order_start_from(object.at("next_order"), state.corpora.size());
  }
  object.at("frozen_position_steps").get_to(state.frozen_position_steps);
  for (const json& excluded : object.at("excluded_shards")) {
    state.excluded_shards.push_back(excluded_shard_from(excluded));
  }
}

}  // namespace

nlohmann::ordered_json excluded_json(const ExcludedShard& excluded) {
  return {{"corpus_digest", excluded.shard.corpus_digest},
          {"file", excluded.shard.file},
          {"reason", excluded.reason},
          {"step", excluded.step},
          {"documents", excluded.documents},
          {"tokens", excluded.tokens}};
}

std::string to_json(const RunState& state) {
  json epochs = json::array();
  for (std::size_t corpus = 0; corpus < state.epochs.size(); ++corpus) {
    for (const auto& [epoch, count] : state.epochs[corpus]) {
      epochs.push_back({{"corpus", corpus},
                        {"epoch", epoch},
                        {"rows", count.rows},
                        {"hash", hex_text(count.hash)}});
    }
  }
  json object = {{"config", state.config_ini},
                 {"position_plan", state.position_plan},
                 {"vocab_size", state.vocab_size},
                 {"pad_id", state.pad_id},
                 {"tokenizer_fingerprint", state.tokenizer_fingerprint},
                 {"corpus_digests", state.corpus_digests},
                 {"corpora", state.corpora},
                 {"step", state.step},
                 {"tokens", state.tokens},
                 {"skipped_steps", state.skipped_steps},
                 {"mask_law", state.mask_law},
                 {"seconds", state.seconds},
                 {"step_seconds", state.step_seconds},
                 {"average_updates", state.average_updates},
                 {"loss_scale", state.loss_scale},
                 {"loss_scale_steps", state.loss_scale_steps},
                 {"masks_hash", hex_text(state.masks_hash)},
                 {"epochs", epochs},
                 {"world_size", state.world_size},
                 {"threads", state.threads},
                 {"torch_version", state.torch_version},
                 {"cpu_capability", state.cpu_capability}};
  object["order_start"] = json_of(state.order_start);
  if (state.next_order) object["next_order"] = json_of(*state.next_order);
  object["frozen_position_steps"] = state.frozen_position_steps;
  object["excluded_shards"] = json::array();
  for (const ExcludedShard& excluded : state.excluded_shards) {
    object["excluded_shards"].push_back(json(excluded_json(excluded)));
  }
  if (state.cooldown) {
    object["cooldown"] = {{"begin", state.cooldown->begin}, {"steps", state.cooldown->steps}};
  }
  return object.dump(1);
}

RunState run_state_from_json(const std::string& text) {
  RunState state;
  try {
    const json object = json::parse(text);
    object.at("config").get_to(state.config_ini);
    object.at("position_plan").get_to(state.position_plan);
    object.at("vocab_size").get_to(state.vocab_size);
    object.at("pad_id").get_to(state.pad_id);
    object.at("tokenizer_fingerprint").get_to(state.tokenizer_fingerprint);
    if (object.contains("corpus")) {  // of a run before there were mixtures
      state.corpora = {object.at("corpus").get<std::string>()};
      state.corpus_digests = {object.at("corpus_digest").get<std::string>()};
    } else {
      object.at("corpora").get_to(state.corpora);
      object.at("corpus_digests").get_to(state.corpus_digests);
    }
    if (state.corpora.empty() || state.corpora.size() != state.corpus_digests.size()) {
      throw std::invalid_argument("corpora and their digests do not match");
    }
    state.epochs.resize(state.corpora.size());
    object.at("step").get_to(state.step);
    object.at("tokens").get_to(state.tokens);
    object.at("skipped_steps").get_to(state.skipped_steps);
    state.mask_law = object.value("mask_law", 1);
    state.seconds = object.value("seconds", 0.0);  // runs of before had none of these
    state.step_seconds = object.value("step_seconds", 0.0);
    state.average_updates = object.value("average_updates", std::int64_t{0});
    state.loss_scale = object.value("loss_scale", 0.0);
    state.loss_scale_steps = object.value("loss_scale_steps", std::int64_t{0});
    if (object.contains("cooldown")) {
      const json& cooldown = object.at("cooldown");
      state.cooldown = CooldownSpan{cooldown.at("begin").get<std::int64_t>(),
                                    cooldown.at("steps").get<std::int64_t>()};
    }
    state.masks_hash = std::stoull(object.at("masks_hash").get<std::string>(), nullptr, 16);
    for (const json& epoch : object.at("epochs")) {
      auto& of_corpus = state.epochs.at(epoch.value("corpus", std::size_t{0}));
      of_corpus[epoch.at("epoch").get<std::uint64_t>()] = {
          epoch.at("rows").get<std::uint64_t>(),
          std::stoull(epoch.at("hash").get<std::string>(), nullptr, 16)};
    }
    read_rows(object, state);
    object.at("world_size").get_to(state.world_size);
    object.at("threads").get_to(state.threads);
    object.at("torch_version").get_to(state.torch_version);
    object.at("cpu_capability").get_to(state.cpu_capability);
  } catch (const std::exception& error) {  // json's errors, and stoull's
    throw CorruptCheckpoint(std::string("state.json: ") + error.what());
  }
  return state;
}

RunConfig config_of(const RunState& state) {
  ConfigBuilder builder;
  builder.apply_text(state.config_ini, "checkpoint's config");
  return builder.config();
}

void require_same_run(const RunState& saved, const RunState& current) {
  require_equal("position plan", saved.position_plan, current.position_plan);
  require_equal("vocabulary size", std::to_string(saved.vocab_size),
                std::to_string(current.vocab_size));
  require_equal("tokenizer", saved.tokenizer_fingerprint, current.tokenizer_fingerprint);
  const RunConfig saved_config = config_of(saved);
  const RunConfig current_config = config_of(current);
  for (const char* key : kFixedKeys) {
    require_equal(key, entry_value(saved_config, key), entry_value(current_config, key));
  }
  require_cooldown_ahead(saved, saved_config, current_config);
  require_equal("corpus", joined(saved.corpus_digests), joined(current.corpus_digests));
  if (saved.mask_law == current.mask_law) return;
  std::string text = "the checkpoint is of a version of tupelo that masks other tokens (law ";
  text += std::to_string(saved.mask_law);
  text += ", here ";
  text += std::to_string(current.mask_law);
  text += "); go on with that version, or begin another run from its weights with --init-from";
  throw std::invalid_argument(text);
}

std::string bit_differences(const RunState& saved, const RunState& current) {
  std::string text;
  const auto compare = [&](const std::string& what, const std::string& a, const std::string& b) {
    if (a != b) text += (text.empty() ? "" : ", ") + what + " was " + a + " and is " + b;
  };
  compare("the number of ranks", std::to_string(saved.world_size),
          std::to_string(current.world_size));
  compare("threads per rank", std::to_string(saved.threads), std::to_string(current.threads));
  const RunConfig saved_config = config_of(saved), current_config = config_of(current);
  for (const char* key :
       {"train.precision", "train.reduce-precision", "train.shard-optimizer",
        "train.least-loss-scale", "train.most-loss-scale", "train.loss-scale-window"}) {
    compare(key, entry_value(saved_config, key), entry_value(current_config, key));
  }
  compare("LibTorch", saved.torch_version, current.torch_version);
  compare("the CPU capability", saved.cpu_capability, current.cpu_capability);
  return text;
}

}  // namespace tupelo
