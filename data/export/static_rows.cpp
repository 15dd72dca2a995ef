#include "data/export/static_rows.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "data/mixing.h"

namespace tupelo {

StaticRows::StaticRows(const ShardedCorpus& corpus, const DataOptions& options,
                       std::uint64_t most_predictions)
    : corpus_(corpus),
      options_(options),
      most_predictions_(most_predictions),
      masker_(corpus.info(), options_),
      plan_(corpus.document_offsets(), options.packing, options.sequence_length) {
  if (plan_.pieces_are_sequences()) {
    throw std::invalid_argument("rows of several sequences have no place in this layout");
  }
}

StaticRow StaticRows::row(std::uint64_t epoch, std::uint64_t row) {
  const SpecialTokens& special = corpus_.info().special;
  StaticRow result;
  masked_.clear();
  begins_.clear();
  result.ids.push_back(special.cls);
  for (const RowPlan::Piece& piece : plan_.pieces(row)) {
    add_piece(piece, epoch, result);
    if (piece.separator) result.ids.push_back(special.sep);
  }
  result.ids.push_back(special.sep);
  keep_some(hash_numbers(options_.seed, epoch, row), result);
  for (const MaskedToken& token : masked_) {
    result.positions.push_back(token.index);
    result.originals.push_back(token.original);
  }
  return result;
}

void StaticRows::add_piece(const RowPlan::Piece& piece, std::uint64_t epoch, StaticRow& row) {
  if (piece.count == 0) return;
  tokens_.resize(piece.count);
  corpus_.read(piece.document, piece.first, piece.count, tokens_.data());
  check_ids(piece);
  const WordFlags words = word_flags(piece);
  of_piece_.clear();
  masker_.mask(epoch, piece.document, piece.first, tokens_, words, of_piece_);
  for (const MaskedToken& token : of_piece_) {
    begins_.push_back(words.starts.empty() ||
                      words.starts[piece.first + token.index - words.first] != 0);
    masked_.push_back({token.index + static_cast<std::uint32_t>(row.ids.size()), token.original,
                       token.replacement});
  }
  row.ids.insert(row.ids.end(), tokens_.begin(), tokens_.end());
}

WordFlags StaticRows::word_flags(const RowPlan::Piece& piece) {
  if (!masker_.needs_words()) return {};
  const std::vector<std::uint64_t>& offsets = corpus_.document_offsets();
  const std::uint64_t length = offsets[piece.document + 1] - offsets[piece.document];
  const std::uint64_t first = piece.first - std::min(piece.first, masker_.flags_before());
  const std::uint64_t end = std::min(length, piece.first + piece.count + masker_.flags_behind());
  word_starts_.resize(end - first);
  corpus_.read_word_starts(piece.document, first, end - first, word_starts_.data());
  return {first, word_starts_};
}

void StaticRows::check_ids(const RowPlan::Piece& piece) const {
  const std::uint32_t largest = *std::max_element(tokens_.begin(), tokens_.end());
  if (largest < corpus_.info().vocab_size) return;
  throw CorpusError("document " + std::to_string(piece.document) + " has token id " +
                    std::to_string(largest) + ", but the vocabulary has " +
                    std::to_string(corpus_.info().vocab_size) + " tokens: the corpus is damaged");
}

// A choice goes on with a token that is next to the one before it and begins no word.
std::vector<StaticRows::Choice> StaticRows::choices(std::uint64_t key) const {
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < masked_.size(); ++i) {
    const bool goes_on = i > 0 && !begins_[i] && masked_[i].index == masked_[i - 1].index + 1;
    if (goes_on) {
      ++choices.back().count;
    } else {
      choices.push_back({i, 1, hash_numbers(key, masked_[i].index)});
    }
  }
  std::sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
    return a.lot != b.lot ? a.lot < b.lot : a.first < b.first;
  });
  return choices;
}

void StaticRows::keep_some(std::uint64_t key, StaticRow& row) {
  if (masked_.size() <= most_predictions_) return;
  std::vector<bool> kept(masked_.size());
  std::uint64_t left = most_predictions_;
  for (const Choice& choice : choices(key)) {
    if (choice.count > left) continue;
    left -= choice.count;
    std::fill_n(kept.begin() + static_cast<std::ptrdiff_t>(choice.first), choice.count, true);
  }
  std::vector<MaskedToken> rest;
  for (std::size_t i = 0; i < masked_.size(); ++i) {
    if (kept[i]) {
      rest.push_back(masked_[i]);
    } else {
      row.ids[masked_[i].index] = masked_[i].original;
      ++row.unmasked;
    }
  }
  masked_ = std::move(rest);
}

}  // namespace tupelo
