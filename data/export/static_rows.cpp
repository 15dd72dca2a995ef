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
      pieces_(corpus, options_),
      plan_(corpus.document_table(), options.packing, options.sequence_length) {
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
  pieces_.read(piece, epoch);
  for (const MaskedToken& token : pieces_.masked()) {
    begins_.push_back(pieces_.begins_word(token.index));
    masked_.push_back({token.index + static_cast<std::uint32_t>(row.ids.size()), token.original,
                       token.replacement});
  }
  row.ids.insert(row.ids.end(), pieces_.tokens().begin(), pieces_.tokens().end());
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
