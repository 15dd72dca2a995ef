#include "data/row_plan.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace tupelo {
namespace {

constexpr std::int64_t kShortestRow = 4;  // [CLS], two tokens, [SEP]

std::uint64_t content_of(std::int64_t sequence_length) {
  if (sequence_length < kShortestRow) {
    throw std::invalid_argument("sequence length " + std::to_string(sequence_length) +
                                " is too short: at least " + std::to_string(kShortestRow));
  }
  return static_cast<std::uint64_t>(sequence_length - 2);
}

std::uint64_t rounded_up(std::uint64_t tokens, std::uint64_t per_row) {
  return (tokens + per_row - 1) / per_row;
}

}  // namespace

RowPlan::RowPlan(const std::vector<std::uint64_t>& document_offsets, Packing packing,
                 std::int64_t sequence_length)
    : packing_(packing), content_(content_of(sequence_length)) {
  const std::size_t count = document_offsets.empty() ? 0 : document_offsets.size() - 1;
  starts_.reserve(count + 1);
  lengths_.reserve(count);
  starts_.push_back(0);
  for (std::size_t d = 0; d < count; ++d) {
    const std::uint64_t length = document_offsets[d + 1] - document_offsets[d];
    lengths_.push_back(length);
    starts_.push_back(starts_.back() +
                      (packing == Packing::kFull ? length + 1 : rounded_up(length, content_)));
  }
  // The last document's separator is the final [SEP] of the last row.
  const std::uint64_t stream = starts_.back() == 0 ? 0 : starts_.back() - 1;
  rows_ = packing == Packing::kFull ? rounded_up(stream, content_) : starts_.back();
}

std::vector<RowPlan::Piece> RowPlan::pieces(std::uint64_t row) const {
  if (row >= rows_) throw std::out_of_range("row outside the plan");
  if (packing_ == Packing::kFull) return pieces_of_stream(row);
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

RowPlan::Piece RowPlan::piece_of_document(std::uint64_t row) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), row);
  const std::uint64_t document = static_cast<std::uint64_t>(after - starts_.begin()) - 1;
  const std::uint64_t first = (row - starts_[document]) * content_;
  return {document, first, std::min(content_, lengths_[document] - first), false};
}

}  // namespace tupelo
