#include "data/piece_masker.h"

#include <algorithm>
#include <string>

namespace tupelo {

void PieceMasker::read(const RowPlan::Piece& piece, std::uint64_t epoch) {
  const std::uint64_t length = corpus_.length(piece.document);
  tokens_.resize(piece.count);
  corpus_.read(piece.document, piece.first, piece.count, tokens_.data());
  check_ids(piece.document);
  flags_ = {};
  if (masker_.needs_words()) {
    const TokenRange range = masker_.flags_for({piece.first, piece.first + piece.count}, length);
    word_starts_.resize(range.end - range.first);
    corpus_.read_word_starts(piece.document, range.first, range.end - range.first,
                             word_starts_.data());
    flags_ = {range.first, word_starts_};
    before_ = piece.first - range.first;
  }
  masked_.clear();
  masker_.mask(epoch, piece.document, length, piece.first, tokens_, flags_, masked_);
}

void PieceMasker::check_ids(std::uint64_t document) const {
  const std::uint32_t largest = *std::max_element(tokens_.begin(), tokens_.end());
  const std::uint32_t vocabulary = corpus_.info().vocab_size;
  if (largest < vocabulary) return;
  throw CorpusError("document " + std::to_string(document) + " has token id " +
                    std::to_string(largest) + ", but the vocabulary has " +
                    std::to_string(vocabulary) + " tokens: the corpus is damaged");
}

}  // namespace tupelo
