#include "data/row_plan.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace tupelo {
namespace {

constexpr std::int64_t kLeastContent = 2;
constexpr std::uint64_t kMostSlack = 64;

// [CLS] and one [SEP], or two, are not content.
std::uint64_t content_of(std::int64_t sequence_length, bool sentence_pairs) {
  const std::int64_t special = sentence_pairs ? 3 : 2;
  if (sequence_length < special + kLeastContent) {
    throw std::invalid_argument("sequence length " + std::to_string(sequence_length) +
                                " is too short: at least " +
                                std::to_string(special + kLeastContent));
  }
  return static_cast<std::uint64_t>(sequence_length - special);
}

std::uint64_t rounded_up(std::uint64_t tokens, std::uint64_t per_row) {
  return (tokens + per_row - 1) / per_row;
}

// Rows of what remains of documents that were cut, [CLS] and [SEP] counted with each.
Bins shared_rows(const std::vector<std::uint64_t>& lengths, std::uint64_t per_row) {
  std::vector<std::uint32_t> sizes;
  sizes.reserve(lengths.size());
  for (const std::uint64_t length : lengths) {
    const auto rest = static_cast<std::uint32_t>(length % per_row);
    sizes.push_back(rest == 0 ? 0 : rest + 2);
  }
  return best_fit(sizes, static_cast<std::uint32_t>(per_row + 2));
}

}  // namespace

RowPlan::RowPlan(const std::vector<std::uint64_t>& document_offsets, Packing packing,
                 std::int64_t sequence_length, bool sentence_pairs)
    : packing_(packing),
      sentence_pairs_(sentence_pairs),
      content_(content_of(sequence_length, sentence_pairs)),
      step_(content_ - (sentence_pairs ? std::min(kMostSlack, content_ / 4) : 0)) {
  if (sentence_pairs && packing != Packing::kDocument) {
    throw std::invalid_argument("sentence pairs are for rows that keep to one document each");
  }
  const std::size_t count = document_offsets.empty() ? 0 : document_offsets.size() - 1;
  starts_.reserve(count + 1);
  lengths_.reserve(count);
  starts_.push_back(0);
  for (std::size_t d = 0; d < count; ++d) {
    const std::uint64_t length = document_offsets[d + 1] - document_offsets[d];
    lengths_.push_back(length);
    starts_.push_back(starts_.back() + extent_of(length));
  }
  rows_ = starts_.back();
  if (packing == Packing::kFull && rows_ > 0) {
    // The last document's separator is the final [SEP] of the last row.
    rows_ = rounded_up(starts_.back() - 1, content_);
  }
  if (packing == Packing::kBestFit) {
    shared_ = shared_rows(lengths_, content_);
    rows_ += shared_.count();
  }
}

std::uint64_t RowPlan::extent_of(std::uint64_t length) const {
  switch (packing_) {
    case Packing::kFull:
      return length + 1;
    case Packing::kDocument:
      return rounded_up(length, length <= content_ ? content_ : step_);
    case Packing::kBestFit:
      return length / content_;
  }
  throw std::logic_error("unknown packing");
}

std::vector<RowPlan::Piece> RowPlan::pieces(std::uint64_t row) const {
  if (row >= rows_) throw std::out_of_range("row outside the plan");
  if (packing_ == Packing::kFull) return pieces_of_stream(row);
  if (packing_ == Packing::kBestFit && row >= starts_.back()) return packed_pieces(row);
  return {piece_of_document(row)};
}

std::vector<RowPlan::Piece> RowPlan::pieces_of_stream(std::uint64_t row) const {
  const std::uint64_t begin = row * content_;
  const std::uint64_t end = std::min(begin + content_, starts_.back() - 1);
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), begin);
  std::uint64_t document = static_cast<std::uint64_t>(after - starts_.begin()) - 1;
  std::vector<Piece> pieces;
  for (std::uint64_t at = begin; at < end; ++document) {
    const std::uint64_t first = at - starts_[document];
    const std::uint64_t count = std::min(lengths_[document] - first, end - at);
    at += count;
    const bool separator = first + count == lengths_[document] && at < end;
    if (separator) ++at;
    pieces.push_back({document, first, count, separator});
  }
  return pieces;
}

std::vector<RowPlan::Piece> RowPlan::packed_pieces(std::uint64_t row) const {
  const std::uint64_t bin = row - starts_.back();
  std::vector<Piece> pieces;
  for (std::uint64_t i = shared_.first[bin]; i < shared_.first[bin + 1]; ++i) {
    const std::uint64_t document = shared_.items[i];
    const std::uint64_t rest = lengths_[document] % content_;
    pieces.push_back({document, lengths_[document] - rest, rest, false});
  }
  return pieces;
}

RowPlan::Piece RowPlan::piece_of_document(std::uint64_t row) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), row);
  const std::uint64_t document = static_cast<std::uint64_t>(after - starts_.begin()) - 1;
  if (lengths_[document] <= content_) return {document, 0, lengths_[document], false};
  const std::uint64_t first = (row - starts_[document]) * step_;
  return {document, first, std::min(step_, lengths_[document] - first), false};
}

}  // namespace tupelo
