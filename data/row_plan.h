// Where rows begin.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/best_fit.h"
#include "data/data_options.h"
#include "data/document_table.h"
#include "data/row_index.h"

namespace tupelo {

// What a plan has to know of all documents before it can find a row.
struct PlanTables {
  // kDocument, kBestFit: rows of each part of the documents, not counting shared ones; kFull: none.
  std::vector<std::uint64_t> rows;
  Bins shared;  // kBestFit: the documents whose last parts share a row
  // Of data/length_bins.h: the longest row of each bin, and [part * bins + bin]: rows.
  std::vector<std::uint64_t> bin_longest = {}, bin_rows = {};
};

// How a document is cut into rows that it has to itself.
struct DocumentCut {
  std::uint64_t content;  // most tokens of a row, without special ones
  std::uint64_t step;     // how far apart rows of a document begin that is longer than that

  std::uint64_t rows(std::uint64_t length) const {
    if (length <= content) return length > 0 ? 1 : 0;
    return (length + step - 1) / step;
  }
  // Tokens of the last of them.
  std::uint64_t last(std::uint64_t length) const {
    return length <= content ? length : length - (rows(length) - 1) * step;
  }
};

// A pure function of the document lengths.
// kFull (RoBERTa's FULL-SENTENCES): documents follow each other with one [SEP] between, cut every
// sequence_length - 2 tokens; kDocument: rows never cross a document. Every row is
// [CLS] content [SEP]; only a last row may be short (kFull) or any document's last (kDocument).
// kBestFit: a document is cut as for kDocument; its last part, when short, shares a row with
// others, each a sequence [CLS] content [SEP] of its own (data/best_fit.h). Shared rows come last.
// Rows for sentence pairs (kDocument) have room for one more [SEP], and a document that is longer
// than a row is cut `slack` tokens earlier than it need be, so that each row may begin up to so
// many tokens before its place, where a sentence does (data/sentence_pairs.h).
//
// Reads the lengths of a part of the documents when one of its rows is asked for. Any thread may
// call const members, which throw what DocumentTable::offset() does.
class RowPlan {
 public:
  // With `tables`, those of an equal plan, no length is read; without, kDocument and kBestFit read
  // all. Throws std::invalid_argument when sequence_length < 4, or 5 with pairs, and for pairs of
  // another packing than kDocument.
  RowPlan(std::shared_ptr<const DocumentTable> documents, Packing packing,
          std::int64_t sequence_length, bool sentence_pairs = false,
          std::optional<PlanTables> tables = {});
  // Document d has document_offsets[d + 1] - document_offsets[d] tokens.
  RowPlan(const std::vector<std::uint64_t>& document_offsets, Packing packing,
          std::int64_t sequence_length, bool sentence_pairs = false)
      : RowPlan(std::make_shared<DocumentOffsets>(document_offsets), packing, sequence_length,
                sentence_pairs) {}

  std::uint64_t rows() const { return rows_; }
  // Of rows for sentence pairs; 64, or a quarter of a row if that is less. Otherwise 0.
  std::uint64_t slack() const { return cut_.content - cut_.step; }
  DocumentCut cut() const { return cut_; }
  bool sentence_pairs() const { return sentence_pairs_; }
  // Whether every piece of a row is a sequence of its own, with its own [CLS] and [SEP].
  bool pieces_are_sequences() const { return packing_ == Packing::kBestFit; }
  const PlanTables& tables() const { return tables_; }

  struct Piece {  // document tokens [first, first + count), then a [SEP] when `separator`
    std::uint64_t document, first, count;
    bool separator;
  };
  // Pieces of row `row` in order (the [SEP] that ends the row is not among them). A piece may be a
  // lone [SEP]: of a document that fills the row before to its end.
  std::vector<Piece> pieces(std::uint64_t row) const;

 private:
  // A document by its part.
  struct Place {
    std::size_t part;
    std::uint64_t document;
  };
  Place place(std::uint64_t document) const;
  Place document_at(std::uint64_t position) const;
  std::uint64_t position_of(Place place) const;
  std::vector<Piece> pieces_of_stream(std::uint64_t row) const;
  Piece piece_of_document(std::uint64_t row) const;
  std::vector<Piece> packed_pieces(std::uint64_t bin) const;

  std::shared_ptr<const DocumentTable> documents_;
  Packing packing_;
  bool sentence_pairs_;
  DocumentCut cut_;
  PlanTables tables_;
  std::optional<RowIndex> index_;  // but for kFull
  std::uint64_t rows_ = 0;
  std::vector<std::uint64_t> first_documents_;  // of each part, and the end
  // Of each part, and the end: kFull: its first position in the stream, separators counted;
  // else its first row.
  std::vector<std::uint64_t> starts_;
};

}  // namespace tupelo
