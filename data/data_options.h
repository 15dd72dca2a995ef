// What a run may choose about its rows, masks and batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tupelo {

enum class Packing { kFull, kDocument, kBestFit };  // see RowPlan
// What is chosen for masking as one: a token, a word, or a span of words that is long by SpanBERT's
// geometric law, or 1 to n words long with probability proportional to 1/length.
enum class Masking { kToken, kWholeWord, kSpan, kNgram };
// What becomes [MASK], random or stays as one: a token, a word, a span. kToken masking knows tokens
// only, and for kWholeWord a word is a span.
enum class MaskUnit { kToken, kWord, kSpan };
// When the segments of a row and their order are drawn: once, as in epoch 0, or in every epoch.
enum class PairDraw { kStatic, kDynamic };

// `value` up to and including step `until_step`, counted from 1.
struct RampPart {
  std::int64_t value, until_step;
};
using Ramp = std::vector<RampPart>;  // in the order of its steps

struct DataOptions {
  std::int64_t sequence_length = 512;  // tokens of a row, [CLS] and final [SEP] included; >= 4
  Packing packing = Packing::kFull;
  Masking masking = Masking::kToken;
  MaskUnit mask_unit = MaskUnit::kWord;
  double span_probability = 0.2;  // kSpan: that a span ends after a word; in (0, 1]
  std::int64_t span_words = 10;   // kSpan: at most, 1 to 64
  std::int64_t ngram_words = 4;   // kNgram: at most, 1 to 64
  // A word of more tokens counts as so many words of one token; 1 to 1024.
  std::int64_t longest_word_tokens = 32;
  double mask_fraction = 0.15;      // of content tokens
  double mask_token_share = 0.8;    // of chosen tokens: replaced by [MASK]
  double random_token_share = 0.1;  // of chosen tokens: replaced by a random ordinary token
  // Rows of two segments, swapped or not (data/sentence_pairs.h); needs Packing::kDocument and a
  // corpus with sentence starts.
  bool sentence_pairs = false;
  PairDraw pair_draw = PairDraw::kDynamic;
  std::uint64_t seed = 1;
  std::int64_t global_batch = 32;  // rows per optimizer step over all ranks
  std::int64_t micro_batch = 8;    // rows per forward pass of a rank, at most
  // What samples of several corpora are drawn by: "tokens" or "tokens^0.5", their sizes to a power;
  // or weights, "0.7,0.3".
  std::string mixture = "tokens";
  // Steps take rows of one of so many ranges of lengths (data/length_bins.h), 0 to 256; 0: all
  // lengths together. Needs Packing::kDocument and a single corpus.
  std::int64_t length_bins = 0;
  Ramp length_ramp;        // sequence lengths before sequence_length
  Ramp batch_ramp;         // global batches before global_batch
  int prefetch_steps = 4;  // steps prepared ahead of the consumer; >= 1
};

}  // namespace tupelo
