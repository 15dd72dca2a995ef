// Rows of one length with their masks laid down, as BERT's recipes store them.
#pragma once

#include <cstdint>
#include <vector>

#include "data/corpus.h"
#include "data/data_options.h"
#include "data/piece_masker.h"
#include "data/row_plan.h"

namespace tupelo {

// T: sequence_length, P: most predictions.
struct StaticRow {
  std::vector<std::uint32_t> ids;  // [CLS] tokens [SEP], masks applied, at most T
  // Rising, the tokens that stood there, at most P of each.
  std::vector<std::uint32_t> positions, originals;
  std::uint64_t unmasked = 0;  // chosen tokens that were too many, so that they stay as they are
};

class StaticRows {
 public:
  // Of more than `most_predictions` chosen tokens of a row, words (or tokens, when tokens are
  // masked) are left out at random, by seed, epoch and row. `corpus` must outlive it. Throws
  // std::invalid_argument on options out of range.
  StaticRows(const ShardedCorpus& corpus, const DataOptions& options,
             std::uint64_t most_predictions);

  std::uint64_t rows() const { return plan_.rows(); }
  // A pure function of seed, epoch and row. Throws CorpusError for ids outside the vocabulary.
  StaticRow row(std::uint64_t epoch, std::uint64_t row);

 private:
  // Chosen tokens that stay or go together.
  struct Choice {
    std::size_t first, count;  // of `masked_`
    std::uint64_t lot;
  };
  void add_piece(const RowPlan::Piece& piece, std::uint64_t epoch, StaticRow& row);
  std::vector<Choice> choices(std::uint64_t key) const;
  void keep_some(std::uint64_t key, StaticRow& row);

  const ShardedCorpus& corpus_;
  const DataOptions options_;
  const std::uint64_t most_predictions_;
  PieceMasker pieces_;
  RowPlan plan_;
  // Of the current row: chosen tokens by their position in it, and whether each begins a word.
  std::vector<MaskedToken> masked_;
  std::vector<bool> begins_;
};

}  // namespace tupelo
