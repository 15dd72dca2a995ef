#include "data/row_plan.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

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

DocumentCut cut_for(std::uint64_t content, bool sentence_pairs) {
  return {content, content - (sentence_pairs ? std::min(kMostSlack, content / 4) : 0)};
}

// Rows of what remains of documents that were cut, [CLS] and [SEP] counted with each.
Bins shared_rows(const DocumentTable& documents, std::uint64_t per_row) {
  std::vector<std::uint32_t> sizes;
  for (std::size_t part = 0; part < documents.parts().size(); ++part) {
    std::uint64_t begin = 0;
    for (std::uint64_t d = 0; d < documents.parts()[part].documents; ++d) {
      const std::uint64_t end = documents.offset(part, d + 1);
      const auto rest = static_cast<std::uint32_t>((end - begin) % per_row);
      sizes.push_back(rest == 0 ? 0 : rest + 2);
      begin = end;
    }
  }
  return best_fit(sizes, static_cast<std::uint32_t>(per_row + 2));
}

// Which of the stretches that begin at `starts` holds `value`; empty ones hold nothing.
std::size_t stretch_at(const std::vector<std::uint64_t>& starts, std::uint64_t value) {
  const auto after = std::upper_bound(starts.begin(), starts.end(), value);
  return static_cast<std::size_t>(after - starts.begin()) - 1;
}

}  // namespace

RowPlan::RowPlan(std::shared_ptr<const DocumentTable> documents, Packing packing,
                 std::int64_t sequence_length, bool sentence_pairs,
                 std::optional<PlanTables> tables)
    : documents_(std::move(documents)),
      packing_(packing),
      sentence_pairs_(sentence_pairs),
      cut_(cut_for(content_of(sequence_length, sentence_pairs), sentence_pairs)),
      first_documents_{0},
      starts_{0} {
  if (sentence_pairs && packing != Packing::kDocument) {
    throw std::invalid_argument("sentence pairs are for rows that keep to one document each");
  }
  const std::vector<DocumentTable::Part>& parts = documents_->parts();
  if (packing != Packing::kFull) {
    index_.emplace(
        documents_, 1, [packing, cut = cut_](std::uint64_t length, std::span<std::uint64_t> rows) {
          rows[0] += packing == Packing::kBestFit ? length / cut.content : cut.rows(length);
        });
  }
  if (tables) {
    tables_ = std::move(*tables);
  } else if (index_) {
    for (std::size_t part = 0; part < parts.size(); ++part) {
      tables_.rows.push_back(index_->count(part)[0]);
    }
    if (packing == Packing::kBestFit) tables_.shared = shared_rows(*documents_, cut_.content);
  }
  for (std::size_t part = 0; part < parts.size(); ++part) {
    first_documents_.push_back(first_documents_.back() + parts[part].documents);
    starts_.push_back(starts_.back() + (index_ ? tables_.rows.at(part)
                                               : parts[part].tokens + parts[part].documents));
  }
  rows_ = starts_.back();
  if (packing == Packing::kFull && rows_ > 0) {
    // The last document's separator is the final [SEP] of the last row.
    rows_ = rounded_up(starts_.back() - 1, cut_.content);
  }
  if (packing == Packing::kBestFit) rows_ += tables_.shared.count();
}

std::vector<RowPlan::Piece> RowPlan::pieces(std::uint64_t row) const {
  if (row >= rows_) throw std::out_of_range("row outside the plan");
  if (packing_ == Packing::kFull) return pieces_of_stream(row);
  if (row >= starts_.back()) return packed_pieces(row - starts_.back());
  return {piece_of_document(row)};
}

std::uint64_t RowPlan::position_of(Place place) const {
  return starts_[place.part] + documents_->offset(place.part, place.document) + place.document;
}

// The last document that begins at or before a position of the stream.
RowPlan::Place RowPlan::document_at(std::uint64_t position) const {
  const std::size_t part = stretch_at(starts_, position);
  std::uint64_t first = 0, end = documents_->parts()[part].documents;
  while (end - first > 1) {
    const std::uint64_t middle = (first + end) / 2;
    (position_of({part, middle}) <= position ? first : end) = middle;
  }
  return {part, first};
}

std::vector<RowPlan::Piece> RowPlan::pieces_of_stream(std::uint64_t row) const {
  const std::uint64_t begin = row * cut_.content;
  const std::uint64_t end = std::min(begin + cut_.content, starts_.back() - 1);
  Place place = document_at(begin);
  std::uint64_t first = begin - position_of(place);
  std::vector<Piece> pieces;
  for (std::uint64_t at = begin; at < end; first = 0) {
    const std::uint64_t length = documents_->length(place.part, place.document);
    const std::uint64_t count = std::min(length - first, end - at);
    at += count;
    const bool separator = first + count == length && at < end;
    if (separator) ++at;
    pieces.push_back({first_documents_[place.part] + place.document, first, count, separator});
    ++place.document;
    while (at < end && place.document == documents_->parts()[place.part].documents) {
      place = {place.part + 1, 0};
    }
  }
  return pieces;
}

RowPlan::Place RowPlan::place(std::uint64_t document) const {
  const std::size_t part = stretch_at(first_documents_, document);
  return {part, document - first_documents_[part]};
}

std::vector<RowPlan::Piece> RowPlan::packed_pieces(std::uint64_t bin) const {
  const Bins& shared = tables_.shared;
  std::vector<Piece> pieces;
  for (std::uint64_t i = shared.first[bin]; i < shared.first[bin + 1]; ++i) {
    const Place at = place(shared.items[i]);
    const std::uint64_t length = documents_->length(at.part, at.document);
    const std::uint64_t rest = length % cut_.content;
    pieces.push_back({shared.items[i], length - rest, rest, false});
  }
  return pieces;
}

RowPlan::Piece RowPlan::piece_of_document(std::uint64_t row) const {
  const std::size_t part = stretch_at(starts_, row);
  const RowIndex::Found found = index_->find(part, 0, row - starts_[part]);
  const std::uint64_t document = first_documents_[part] + found.document;
  const std::uint64_t length = documents_->length(part, found.document);
  if (length <= cut_.content) return {document, 0, length, false};
  const std::uint64_t first = found.row * cut_.step;
  return {document, first, std::min(cut_.step, length - first), false};
}

}  // namespace tupelo
