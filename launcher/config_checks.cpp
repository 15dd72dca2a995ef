// What settings demand of each other.
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "launcher/run_config.h"
#include "launcher/update_settings.h"
#include "launcher/value_text.h"
#include "model/mask_decoder.h"
#include "model/position/input_encoding.h"
#include "model/position/position_plan.h"
#include "model/recompute_policy.h"

namespace tupelo {
namespace {

// Checks the settings of one builder.
class Checks {
 public:
  explicit Checks(const ConfigBuilder& builder) : builder_(builder), config_(builder.config()) {}

  // `holds`, or setting `name` is wrong: "<where>: <name> is <value>, <what>".
  void require(bool holds, const std::string& name, const std::string& what) const {
    if (holds) return;
    throw std::invalid_argument(builder_.place_of(name) + " is " + text_of(name) + ", " + what);
  }

  // Runs `check`, with where setting `name` stands in front of what it finds wrong.
  void reading(const std::string& name, const std::function<void()>& check) const {
    try {
      check();
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(builder_.place_of(name) + ": " + error.what());
    }
  }

  // `name` keeps its default unless `holds`.
  void needs(const std::string& name, bool holds, const std::string& condition) const {
    static const RunConfig defaults;
    const bool is_default = text_of(name) == entry(name).get(defaults);
    require(holds || is_default, name, "which has no effect unless " + condition);
  }

 private:
  static const ConfigEntry& entry(const std::string& name) {
    const auto& entries = config_entries();
    return *std::find_if(entries.begin(), entries.end(),
                         [&](const ConfigEntry& candidate) { return candidate.name == name; });
  }
  std::string text_of(const std::string& name) const { return entry(name).get(config_); }

  const ConfigBuilder& builder_;
  const RunConfig& config_;
};

void check_model(const Checks& checks, const ModelOptions& model) {
  checks.require(model.hidden_size % model.heads == 0, "model.heads",
                 "which does not divide model.hidden-size " + std::to_string(model.hidden_size));
  checks.needs("model.logn-length", model.logn != "off", "model.logn is on");
  checks.reading("model.position", [&] { PositionPlan::parse(model.position, model.layers); });
  checks.reading("model.input-position", [&] { InputPosition::parse(model.input_position); });
  checks.reading("model.mask-decoder", [&] { MaskDecoder::make(model.mask_decoder, 1, 1, {}); });
  checks.reading("model.recompute",
                 [&] { parse_recompute(model.recompute, model.layers, "recompute"); });
}

void check_data(const Checks& checks, const RunConfig& config) {
  const DataOptions& data = config.data;
  const std::string covered = "longer than the position tables: model.max-positions is " +
                              std::to_string(config.model.max_positions);
  checks.require(data.sequence_length <= config.model.max_positions, "data.sequence-length",
                 covered);
  for (const RampPart& part : data.length_ramp) {
    checks.require(part.value <= config.model.max_positions, "data.length-ramp", covered);
  }
  checks.require(data.mask_token_share + data.random_token_share <= 1.0, "data.mask-token-share",
                 "which adds up with data.random-token-share to more than 1");
  checks.require(!data.sentence_pairs || data.packing == Packing::kDocument, "objective.sop-weight",
                 "which needs data.packing doc: only there do rows keep to one document");
  checks.require(data.length_bins == 0 || data.packing == Packing::kDocument, "data.length-bins",
                 "which needs data.packing doc: other rows are full, so set it to 0");
  checks.needs("objective.sop-pairs", data.sentence_pairs, "objective.sop-weight is above 0");
  checks.needs("data.span-probability", data.masking == Masking::kSpan, "data.masking is span");
  checks.needs("data.span-words", data.masking == Masking::kSpan, "data.masking is span");
  checks.needs("data.ngram-words", data.masking == Masking::kNgram, "data.masking is ngram");
  const bool by_words = data.masking != Masking::kToken;
  const std::string words = "data.masking is whole-word, span or ngram";
  checks.needs("data.longest-word-tokens", by_words, words);
  checks.needs("data.mask-unit", by_words || data.mask_unit == MaskUnit::kToken, words);
}

void check_optim(const Checks& checks, const RunConfig& config) {
  const UpdateOptions& optim = config.optim;
  const bool trained = optim.positions != "freeze";
  const std::string condition = "optim.positions is update or truncate";
  checks.require(trained || parse_duration(optim.position_frozen_steps).amount == 0,
                 "optim.position-frozen-steps",
                 "which has no effect while optim.positions is freeze");
  checks.needs("optim.position-lr-multiplier", trained, condition);
  checks.needs("optim.position-weight-decay", trained, condition);
  const std::string& schedule = optim.schedule.name;
  checks.reading("optim.warmup", [&] { parse_steps(optim.warmup, config.train.steps); });
  checks.reading("optim.cooldown", [&] { cooldown_span(config); });
  const bool polynomial = schedule == "polynomial" || schedule == "fairseq-polynomial";
  checks.needs("optim.power", polynomial, "optim.schedule is polynomial or fairseq-polynomial");
  checks.needs(
      "optim.end-learning-rate", polynomial || schedule == "wsd" || cooldown_span(config).steps > 0,
      "optim.schedule is polynomial, fairseq-polynomial or wsd, or optim.cooldown above 0");
  checks.reading("optim.flavour", [&] { optimizer_flavour(optim.optimizer); });
  validate_updates(config);
  checks.reading("optim.schedule", [&] { learning_rate_schedule(config); });
}

// Full rows alone have one shape.
void check_cuda_graphs(const Checks& checks, const RunConfig& config) {
  checks.needs("train.cuda-graphs", config.data.packing == Packing::kFull, "data.packing is full");
  const RecomputePolicy policy =
      parse_recompute(config.model.recompute, config.model.layers, "recompute");
  const std::ptrdiff_t repeated = config.model.mask_decoder == "none" ? 0 : 1;  // the last layer
  const bool keeps_some =
      std::count(policy.layers.begin(), policy.layers.end() - repeated, Recomputed::kNothing) > 0;
  checks.needs("train.cuda-graphs", keeps_some,
               repeated == 0 ? "model.recompute leaves a layer whole"
                             : "model.recompute leaves a layer whole, besides the last, which "
                               "model.mask-decoder repeats");
}

void check_precision(const Checks& checks, const TrainOptions& train) {
  const bool scaled = train.precision == "fp16";
  for (const char* name : {"train.loss-scale", "train.least-loss-scale", "train.most-loss-scale",
                           "train.loss-scale-window"}) {
    checks.needs(name, scaled, "train.precision is fp16");
  }
  const LossScalerOptions& scale = train.loss_scale;
  checks.require(scale.least <= scale.initial, "train.least-loss-scale",
                 "which is more than train.loss-scale " + number_text(scale.initial));
  checks.require(scale.initial <= scale.most, "train.loss-scale",
                 "which is more than train.most-loss-scale " + number_text(scale.most));
}

}  // namespace

void validate_model(const ConfigBuilder& builder) {
  check_model(Checks(builder), builder.config().model);
}

void validate(const ConfigBuilder& builder) {
  const Checks checks(builder);
  check_model(checks, builder.config().model);
  check_data(checks, builder.config());
  check_precision(checks, builder.config().train);
  check_cuda_graphs(checks, builder.config());
  check_optim(checks, builder.config());
}

}  // namespace tupelo
