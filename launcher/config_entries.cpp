// The table of everything that can be configured. A new setting is one row here.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/mixture.h"
#include "launcher/nearest_name.h"
#include "launcher/ramp_text.h"
#include "launcher/run_config.h"
#include "launcher/value_text.h"
#include "model/position/input_encoding.h"
#include "model/position/position_encoding.h"
#include "optim/optimizer.h"

namespace tupelo {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr double kHuge = std::numeric_limits<double>::max();

// `field` is a callable that returns a reference to the value inside a RunConfig, const or not.
template <typename Field>
ConfigEntry integer(std::string name, Field field, std::int64_t least, std::int64_t most,
                    std::string help, std::string alias = "") {
  return {std::move(name), std::move(alias), std::move(help),
          [=](RunConfig& config, const std::string& text) {
            using Value = std::remove_reference_t<decltype(field(config))>;
            field(config) = static_cast<Value>(parse_integer(text, least, most));
          },
          [=](const RunConfig& config) { return std::to_string(field(config)); }};
}

template <typename Field>
ConfigEntry number(std::string name, Field field, double least, double most, std::string help) {
  return {std::move(name), "", std::move(help),
          [=](RunConfig& config, const std::string& text) {
            field(config) = parse_number(text, least, most);
          },
          [=](const RunConfig& config) { return number_text(field(config)); }};
}

template <typename Field>
ConfigEntry flag(std::string name, Field field, std::string help) {
  return {std::move(name), "", std::move(help),
          [=](RunConfig& config, const std::string& text) { field(config) = parse_flag(text); },
          [=](const RunConfig& config) { return field(config) ? "true" : "false"; }};
}

template <typename Field>
ConfigEntry text(std::string name, Field field, std::string help, std::string alias = "") {
  return {std::move(name), std::move(alias), std::move(help),
          [=](RunConfig& config, const std::string& value) { field(config) = value; },
          [=](const RunConfig& config) { return std::string(field(config)); }};
}

// One of a few words, each standing for a value of an enumeration (or being the value itself).
template <typename Field, typename Value>
ConfigEntry choice(std::string name, Field field,
                   std::vector<std::pair<std::string, Value>> choices, std::string help,
                   std::string alias = "") {
  return {std::move(name), std::move(alias), std::move(help),
          [=](RunConfig& config, const std::string& word) {
            std::vector<std::string> valid;
            for (const auto& [known, value] : choices) {
              if (known == word) {
                field(config) = value;
                return;
              }
              valid.push_back(known);
            }
            throw std::invalid_argument(unknown_name("value", word, valid));
          },
          [=](const RunConfig& config) {
            for (const auto& [known, value] : choices) {
              if (field(config) == value) return known;
            }
            return std::string();
          }};
}

std::vector<std::pair<std::string, std::string>> words(const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const std::string& name : names) result.emplace_back(name, name);
  return result;
}

// "none, learned, sinusoidal": the names of a table of encodings.
template <typename Kind>
std::string names_of(const std::vector<Kind>& kinds) {
  std::string names = "none";
  for (const Kind& kind : kinds) names += ", " + kind.name;
  return names;
}

// "128:9000,256:9500": a value and the last step that has it.
template <typename Field>
ConfigEntry ramp(std::string name, Field field, std::int64_t least, std::string help) {
  return {std::move(name), "", std::move(help),
          [=](RunConfig& config, const std::string& text) {
            field(config) = parse_ramp(text, least, 1 << 24);
          },
          [=](const RunConfig& config) { return ramp_text(field(config)); }};
}

std::vector<ConfigEntry> model_entries() {
  return {
      integer(
          "model.layers", [](auto& c) -> auto& { return c.model.layers; }, 1, 1000,
          "encoder layers"),
      integer(
          "model.hidden-size", [](auto& c) -> auto& { return c.model.hidden_size; }, 1, 1 << 20,
          "width of a token's representation"),
      integer(
          "model.heads", [](auto& c) -> auto& { return c.model.heads; }, 1, 1 << 16,
          "attention heads; must divide hidden-size"),
      integer(
          "model.intermediate-size", [](auto& c) -> auto& { return c.model.intermediate_size; }, 1,
          1 << 22, "width inside the feed-forward block"),
      integer(
          "model.max-positions", [](auto& c) -> auto& { return c.model.max_positions; }, 1, 1 << 24,
          "longest sequence the position tables cover"),
      number(
          "model.dropout", [](auto& c) -> auto& { return c.model.dropout; }, 0, 0.99,
          "dropout after embeddings, attention output and feed-forward"),
      number(
          "model.attention-dropout", [](auto& c) -> auto& { return c.model.attention_dropout; }, 0,
          0.99, "dropout on attention probabilities"),
      number(
          "model.layer-norm-epsilon", [](auto& c) -> auto& { return c.model.layer_norm_epsilon; },
          1e-15, 1, "added to the variance in every layer norm"),
      number(
          "model.initializer-range", [](auto& c) -> auto& { return c.model.initializer_range; }, 0,
          10, "standard deviation of initial weights"),
      text(
          "model.position", [](auto& c) -> auto& { return c.model.position; },
          "attention position encoding per layer, e.g. \"0-5:none,6-11:tupe-r\" "
          "(docs/positions.md); names: " +
              names_of(position_encoding_kinds()),
          "position"),
      text(
          "model.input-position", [](auto& c) -> auto& { return c.model.input_position; },
          "position encoding of the embeddings, NAME or NAME(option=value,...); names: " +
              names_of(input_encoding_kinds()),
          "input-position"),
      flag(
          "model.allow-no-position", [](auto& c) -> auto& { return c.model.allow_no_position; },
          "accept a model without any position information"),
      choice<>(
          "model.logn", [](auto& c) -> auto& { return c.model.logn; },
          words({"off", "plain", "clip16", "max1"}),
          "factor on the scores that grows with the logarithm of a sequence's length"),
      integer(
          "model.logn-length", [](auto& c) -> auto& { return c.model.logn_length; }, 0, 1 << 24,
          "length at which that factor is 1; 0 = max-positions"),
      text(
          "model.mask-decoder", [](auto& c) -> auto& { return c.model.mask_decoder; },
          "absolute positions in front of the last layer alone: none, emd or \"emd(steps=2)\""),
      text(
          "model.recompute", [](auto& c) -> auto& { return c.model.recompute; },
          "layers whose activations are recomputed in backward: none, all or \"0-3+6\"",
          "recompute"),
  };
}

std::vector<ConfigEntry> data_entries() {
  return {
      integer(
          "data.sequence-length", [](auto& c) -> auto& { return c.data.sequence_length; }, 4,
          1 << 24, "tokens per row, [CLS] and [SEP] included"),
      ConfigEntry{"data.mixture", "",
                  "how samples are drawn from several corpora: \"tokens\", by their sizes, "
                  "\"tokens^0.5\", by a power of them, or weights, \"0.7,0.3\"",
                  [](RunConfig& config, const std::string& value) {
                    check_mixture(value);
                    config.data.mixture = value;
                  },
                  [](const RunConfig& config) { return config.data.mixture; }},
      ramp(
          "data.length-ramp", [](auto& c) -> auto& { return c.data.length_ramp; }, 4,
          "sequence lengths before that, \"128:9000\": 128 up to step 9000"),
      choice<>(
          "data.packing", [](auto& c) -> auto& { return c.data.packing; },
          std::vector<std::pair<std::string, Packing>>{
              {"full", Packing::kFull}, {"doc", Packing::kDocument}, {"packed", Packing::kBestFit}},
          "full: rows run across documents; doc: they stop at a document's end; packed: documents "
          "share a row without seeing each other, positions from 0 in each"),
      choice<>(
          "data.masking", [](auto& c) -> auto& { return c.data.masking; },
          std::vector<std::pair<std::string, Masking>>{{"token", Masking::kToken},
                                                       {"whole-word", Masking::kWholeWord},
                                                       {"span", Masking::kSpan},
                                                       {"ngram", Masking::kNgram}},
          "what is chosen as a whole: tokens, words, or spans of words of geometric length (span) "
          "or of length n with probability proportional to 1/n (ngram)"),
      choice<>(
          "data.mask-unit", [](auto& c) -> auto& { return c.data.mask_unit; },
          std::vector<std::pair<std::string, MaskUnit>>{
              {"token", MaskUnit::kToken}, {"word", MaskUnit::kWord}, {"span", MaskUnit::kSpan}},
          "what becomes [MASK], random or stays as one; masking by tokens knows tokens only"),
      number(
          "data.span-probability", [](auto& c) -> auto& { return c.data.span_probability; }, 1e-6,
          1, "masking span: that a span ends after a word"),
      integer(
          "data.span-words", [](auto& c) -> auto& { return c.data.span_words; }, 1, 64,
          "masking span: most words of a span"),
      integer(
          "data.ngram-words", [](auto& c) -> auto& { return c.data.ngram_words; }, 1, 64,
          "masking ngram: most words of a span"),
      integer(
          "data.longest-word-tokens", [](auto& c) -> auto& { return c.data.longest_word_tokens; },
          1, 1024, "a word of more tokens is masked token by token"),
      number(
          "data.mask-fraction", [](auto& c) -> auto& { return c.data.mask_fraction; }, 0.001, 0.9,
          "share of tokens chosen for prediction"),
      number(
          "data.mask-token-share", [](auto& c) -> auto& { return c.data.mask_token_share; }, 0, 1,
          "share of chosen tokens replaced by [MASK]"),
      number(
          "data.random-token-share", [](auto& c) -> auto& { return c.data.random_token_share; }, 0,
          1, "share of chosen tokens replaced by a random token"),
      integer(
          "data.prefetch-steps", [](auto& c) -> auto& { return c.data.prefetch_steps; }, 1, 1024,
          "steps whose batches are prepared ahead"),
  };
}

std::vector<ConfigEntry> objective_entries() {
  ConfigEntry weight = number(
      "objective.sop-weight", [](auto& c) -> auto& { return c.objective.sop_weight; }, 0, 1e6,
      "weight of sentence-order prediction beside masked LM, in rows of two segments (data.packing "
      "doc); 0 = masked LM alone");
  weight.set = [set = weight.set](RunConfig& config, const std::string& text) {
    set(config, text);
    config.data.sentence_pairs = config.objective.sop_weight > 0;
    config.model.sentence_order_head = config.data.sentence_pairs;
  };
  return {weight, choice<>(
                      "objective.sop-pairs", [](auto& c) -> auto& { return c.data.pair_draw; },
                      std::vector<std::pair<std::string, PairDraw>>{{"dynamic", PairDraw::kDynamic},
                                                                    {"static", PairDraw::kStatic}},
                      "when segments and their order are drawn: in every epoch, or once")};
}

std::vector<ConfigEntry> train_entries() {
  return {
      integer(
          "train.steps", [](auto& c) -> auto& { return c.train.steps; }, 1, kNoLimit,
          "optimizer steps of the whole run", "steps"),
      integer(
          "train.global-batch", [](auto& c) -> auto& { return c.data.global_batch; }, 1, 1 << 24,
          "rows per step over all ranks", "global-batch"),
      ramp(
          "train.batch-ramp", [](auto& c) -> auto& { return c.data.batch_ramp; }, 1,
          "global batches before that, \"64:1000,128:3000\": 64 up to step 1000, 128 up to 3000"),
      integer(
          "train.micro-batch", [](auto& c) -> auto& { return c.data.micro_batch; }, 1, 1 << 24,
          "rows per forward pass of a rank, at most", "micro-batch"),
      integer(
          "train.seed", [](auto& c) -> auto& { return c.data.seed; }, 0, kNoLimit,
          "fixes initial weights, order, masks and dropout", "seed"),
      integer(
          "train.threads", [](auto& c) -> auto& { return c.train.threads; }, 0, 4096,
          "computing threads per rank; 0 = cores of the host / ranks on it"),
      integer(
          "train.log-every", [](auto& c) -> auto& { return c.train.log_every; }, 1, kNoLimit,
          "steps between lines of metrics.jsonl"),
      integer(
          "train.validate-every", [](auto& c) -> auto& { return c.train.validate_every; }, 0,
          kNoLimit, "steps between validations; 0 = never"),
      integer(
          "train.validate-rows", [](auto& c) -> auto& { return c.train.validate_rows; }, 1,
          kNoLimit, "held-out rows per validation, at most"),
      integer(
          "train.probe-every", [](auto& c) -> auto& { return c.train.probe_every; }, 0, kNoLimit,
          "steps between looks at the parts of attention scores (metrics.jsonl); 0 = never"),
      integer(
          "train.save-every", [](auto& c) -> auto& { return c.train.save_every; }, 0, kNoLimit,
          "steps between checkpoints; 0 = only at the end"),
      integer(
          "train.keep-checkpoints", [](auto& c) -> auto& { return c.train.keep_checkpoints; }, 1,
          1 << 20, "newest checkpoints kept"),
      integer(
          "train.timeout-seconds", [](auto& c) -> auto& { return c.train.timeout_seconds; }, 1,
          1 << 24, "longest wait for other ranks in a collective"),
      integer(
          "train.bucket-bytes", [](auto& c) -> auto& { return c.train.bucket_bytes; }, 1,
          std::int64_t{1} << 40, "size of a gradient bucket"),
      flag(
          "train.overlap", [](auto& c) -> auto& { return c.train.overlap; },
          "reduce gradients while backward still runs"),
      choice<>(
          "train.device", [](auto& c) -> auto& { return c.train.device; },
          words({"auto", "cpu", "cuda"}), "where to compute"),
  };
}

// "adamw: torch, fairseq; lamb: corrected, fairseq".
std::string flavours_text() {
  std::string text;
  for (const std::string& optimizer : optimizer_names()) {
    text += (text.empty() ? "" : "; ") + optimizer;
    std::string separator = ": ";
    for (const std::string& flavour : optimizer_flavours(optimizer)) {
      text += separator + flavour;
      separator = ", ";
    }
  }
  return text;
}

std::vector<std::string> flavour_words() {
  std::vector<std::string> valid = {kDefaultFlavour};
  for (const std::string& optimizer : optimizer_names()) {
    for (const std::string& flavour : optimizer_flavours(optimizer)) {
      if (std::find(valid.begin(), valid.end(), flavour) == valid.end()) valid.push_back(flavour);
    }
  }
  return valid;
}

// The default prints as what it stands for: what a run followed stays readable in its files.
ConfigEntry flavour_entry() {
  ConfigEntry entry = choice<>(
      "optim.flavour", [](auto& c) -> auto& { return c.optim.optimizer.flavour; },
      words(flavour_words()), "whose convention, the first unless set; " + flavours_text());
  entry.get = [](const RunConfig& config) {
    const OptimizerOptions& optimizer = config.optim.optimizer;
    return optimizer.flavour == kDefaultFlavour ? optimizer_flavours(optimizer.name).front()
                                                : optimizer.flavour;
  };
  return entry;
}

std::vector<ConfigEntry> optim_entries() {
  return {
      choice<>(
          "optim.optimizer", [](auto& c) -> auto& { return c.optim.optimizer.name; },
          words(optimizer_names()), "update rule"),
      flavour_entry(),
      number(
          "optim.learning-rate", [](auto& c) -> auto& { return c.optim.schedule.peak; }, 0, 1e6,
          "peak learning rate"),
      number(
          "optim.end-learning-rate", [](auto& c) -> auto& { return c.optim.schedule.end; }, 0, 1e6,
          "rate at the last step (polynomial schedules)"),
      number(
          "optim.power", [](auto& c) -> auto& { return c.optim.schedule.power; }, 0, 100,
          "exponent of the polynomial schedule"),
      choice<>(
          "optim.schedule", [](auto& c) -> auto& { return c.optim.schedule.name; },
          words(schedule_names()), "how the rate falls after warm-up"),
      text(
          "optim.warmup", [](auto& c) -> auto& { return c.optim.warmup; },
          "linear warm-up, in steps (\"2000\") or as a share of train.steps (\"6%\")"),
      number(
          "optim.weight-decay", [](auto& c) -> auto& { return c.optim.weight_decay; }, 0, 100,
          "decoupled decay of matrices and word embeddings"),
      number(
          "optim.beta1", [](auto& c) -> auto& { return c.optim.optimizer.beta1; }, 0, 0.9999999,
          "decay of the first moment"),
      number(
          "optim.beta2", [](auto& c) -> auto& { return c.optim.optimizer.beta2; }, 0, 0.9999999,
          "decay of the second moment"),
      number(
          "optim.epsilon", [](auto& c) -> auto& { return c.optim.optimizer.epsilon; }, 1e-30, 1,
          "added to the root of the second moment"),
      number(
          "optim.clip-norm", [](auto& c) -> auto& { return c.optim.clip_norm; }, 0, kHuge,
          "largest global gradient norm; 0 = do not clip"),
      ConfigEntry{"optim.position-lr-multiplier", "",
                  "learning rate of position parameters, relative to the others; auto: 0.2 for "
                  "tupe-full, 1 for the rest",
                  [](RunConfig& config, const std::string& value) {
                    if (value != "auto") parse_number(value, 0, 1e6);
                    config.optim.position_lr_multiplier = value;
                  },
                  [](const RunConfig& config) { return config.optim.position_lr_multiplier; }},
      number(
          "optim.position-weight-decay",
          [](auto& c) -> auto& { return c.optim.position_weight_decay; }, 0, 100,
          "decay of position tables and projections"),
      ConfigEntry{"optim.position-frozen-steps", "",
                  "first steps in which position parameters stay as they are, also in epochs "
                  "(\"2e\", \"0.5 epochs\")",
                  [](RunConfig& config, const std::string& value) {
                    parse_duration(value);
                    config.optim.position_frozen_steps = value;
                  },
                  [](const RunConfig& config) { return config.optim.position_frozen_steps; }},
      choice<>(
          "optim.positions", [](auto& c) -> auto& { return c.optim.positions; },
          words({"update", "freeze", "truncate"}),
          "position parameters: trained, untouched in the whole run, or trained after --extend cut "
          "them",
          "positions"),
  };
}

std::vector<ConfigEntry> all_entries() {
  std::vector<ConfigEntry> all;
  for (auto part :
       {model_entries(), data_entries(), objective_entries(), train_entries(), optim_entries()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

const std::vector<ConfigEntry>& config_entries() {
  static const std::vector<ConfigEntry> entries = all_entries();
  return entries;
}

}  // namespace tupelo
