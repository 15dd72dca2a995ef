// Rows of two consecutive segments of a document, in one order or the other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/corpus.h"
#include "data/data_options.h"
#include "data/row_plan.h"

namespace tupelo {

// Sentence-order prediction (Lan et al., "ALBERT", ICLR 2020, section 3.1): a model is to tell
// whether the segments A and B of [CLS] A [SEP] B [SEP] follow each other in the text or were
// swapped.
struct PairedRow {
  // As RowPlan::pieces(). Two, with a separator between them, for a pair: in the order of the row.
  std::vector<RowPlan::Piece> pieces;
  std::optional<bool> swapped;  // none: no pair
};

// Throws CorpusError when a corpus does not say where sentences begin.
void require_sentence_starts(const CorpusInfo& info);

// Decides what the rows of a corpus hold; a pure function of corpus, plan, seed and, with
// PairDraw::kDynamic, epoch. data/FORMAT.md has the law in full.
//
// A row begins at the last sentence that does so in front of its place within the plan's slack,
// else at its place; so it ends where the next row begins, and every token of a document is in one
// row. It is a pair when it begins and ends with sentences and has at least two: otherwise the
// half-sentence at an end would say whether the segments were swapped. The second segment begins
// with any of its sentences but the first, each as likely, as in BERT; the segments are swapped
// with probability 1/2.
class SentencePairs {
 public:
  // Corpus and plan, one with sentence pairs, outlive it. One thread. Throws CorpusError when the
  // corpus has no sentence starts.
  SentencePairs(const ShardedCorpus& corpus, const RowPlan& plan, const DataOptions& options);

  PairedRow row(std::uint64_t row, std::uint64_t epoch);

 private:
  struct Edge {
    std::uint64_t offset;
    bool between_sentences;
  };
  Edge edge(std::uint64_t document, std::uint64_t place);
  // Puts into starts_ where sentences begin among tokens [first, end) of the document.
  void find_starts(std::uint64_t document, std::uint64_t first, std::uint64_t end);

  const ShardedCorpus& corpus_;
  const RowPlan& plan_;
  std::uint64_t seed_;
  bool anew_;
  std::vector<std::uint8_t> flags_;
  std::vector<std::uint64_t> starts_;
};

}  // namespace tupelo
