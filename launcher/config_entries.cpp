// The table of everything that can be configured. A new setting is one row here, or in
// config_entries_optim.cpp.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/mixture.h"
#include "launcher/config_entry_kinds.h"
#include "launcher/ramp_text.h"
#include "launcher/run_config.h"
#include "model/position/input_encoding.h"
#include "model/position/position_encoding.h"

namespace tupelo {
namespace {

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
          "what backward computes again instead of keeping it: none, full, attention, ffn, "
          "every-K, "
          "\"0-3:attention,4-7:full\" or auto:BYTES, the least work that fits (auto:6GiB)",
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
      integer(
          "data.length-bins", [](auto& c) -> auto& { return c.data.length_bins; }, 0, 256,
          "steps take rows of one of so many ranges of lengths, so that little is padded; needs "
          "packing doc; 0 = all lengths together"),
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
      integer(
          "data.max-bad-shards", [](auto& c) -> auto& { return c.train.max_bad_shards; }, 0,
          kNoLimit,
          "training shards that turn out damaged, missing or unreadable and are left out by all "
          "ranks; with more the run stops"),
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
      flag(
          "train.deterministic", [](auto& c) -> auto& { return c.train.deterministic; },
          "on CUDA devices, only kernels whose results are the same bits run after run, and an "
          "error where there are none; processors need nothing for that"),
      flag(
          "train.cuda-graphs", [](auto& c) -> auto& { return c.train.cuda_graphs; },
          "on CUDA devices, record the layers that are not recomputed and launch them as graphs, "
          "which helps where kernels are short"),
      choice<>(
          "train.device", [](auto& c) -> auto& { return c.train.device; },
          words({"auto", "cpu", "cuda"}), "where to compute"),
      choice<>(
          "train.collectives", [](auto& c) -> auto& { return c.train.collectives; },
          words({"auto", "messages", "shared", "hierarchical"}),
          "how gradients travel on the CPU: through memory that the ranks of one host share, "
          "host by host (hierarchical: in such memory, then between hosts), or in messages, whose "
          "sums have the same bits however ranks are placed; auto: shared on one host, "
          "hierarchical on several that run more than one rank"),
      ConfigEntry{"train.max-time", "",
                  "training time of the run over all its starts, such as 6h30m, after which it "
                  "saves and ends; optim.cooldown begins in time to end by then; 0 = no limit",
                  [](RunConfig& config, const std::string& value) {
                    parse_time_span(value);
                    config.train.max_time = value;
                  },
                  [](const RunConfig& config) { return config.train.max_time; }},
      number(
          "train.ema-decay", [](auto& c) -> auto& { return c.train.ema_decay; }, 0, 0.9999999,
          "also keep an average of the weights that forgets so slowly, such as 0.999; 0 = none"),
      choice<>(
          "train.precision", [](auto& c) -> auto& { return c.train.precision; },
          words({"fp32", "bf16", "fp16"}),
          "what the model computes in; with bf16 and fp16 the optimizer updates float32 copies of "
          "the weights, and gradients of micro-batches are summed in float32",
          "precision"),
      choice<>(
          "train.reduce-precision", [](auto& c) -> auto& { return c.train.reduce_precision; },
          words({"fp32", "bf16"}),
          "what gradients travel between ranks in; bf16 halves the bytes; sums stay "
          "float32, but for NCCL's"),
      choice<>(
          "train.shard-optimizer", [](auto& c) -> auto& { return c.train.shard_optimizer; },
          words({"none", "node", "world"}),
          "world: each rank keeps the optimizer's state, and float32 copies of weights, of its "
          "share of every parameter alone; node: the ranks of each host share them among "
          "themselves",
          "shard-optimizer"),
      number(
          "train.loss-scale", [](auto& c) -> auto& { return c.train.loss_scale.initial; }, 1e-30,
          1e30, "fp16: what losses are first multiplied by, so that gradients do not vanish"),
      number(
          "train.least-loss-scale", [](auto& c) -> auto& { return c.train.loss_scale.least; },
          1e-30, 1e30, "fp16: it is halved when gradients overflow, down to this"),
      number(
          "train.most-loss-scale", [](auto& c) -> auto& { return c.train.loss_scale.most; }, 1e-30,
          1e30, "fp16: and doubled up to this"),
      integer(
          "train.loss-scale-window", [](auto& c) -> auto& { return c.train.loss_scale.window; }, 1,
          kNoLimit, "fp16: after so many steps in a row without an overflow"),
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
