// Pieces of documents, read and masked.
#pragma once

#include <cstdint>
#include <vector>

#include "data/corpus.h"
#include "data/data_options.h"
#include "data/masker.h"
#include "data/row_plan.h"

namespace tupelo {

// One thread.
class PieceMasker {
 public:
  // The corpus outlives it. Throws what Masker() does.
  PieceMasker(const ShardedCorpus& corpus, const DataOptions& options)
      : corpus_(corpus), masker_(corpus.info(), options) {}

  // Reads and masks the tokens of a piece that has some. Throws CorpusError for ids outside the
  // vocabulary, and what reading does.
  void read(const RowPlan::Piece& piece, std::uint64_t epoch);

  // Of the last read(): its tokens, masks laid down; which were masked, by their place in the
  // piece; whether a token of it begins a word, true of all where tokens are masked.
  const std::vector<std::uint32_t>& tokens() const { return tokens_; }
  const std::vector<MaskedToken>& masked() const { return masked_; }
  bool begins_word(std::uint32_t token) const {
    return flags_.starts.empty() || flags_.starts[before_ + token] != 0;
  }

 private:
  void check_ids(std::uint64_t document) const;

  const ShardedCorpus& corpus_;
  Masker masker_;
  std::vector<std::uint32_t> tokens_;
  std::vector<std::uint8_t> word_starts_;
  WordFlags flags_;
  std::uint64_t before_ = 0;  // flags before those of the piece
  std::vector<MaskedToken> masked_;
};

}  // namespace tupelo
