// Where rows begin.
#pragma once

#include <cstdint>
#include <vector>

#include "data/best_fit.h"
#include "data/data_options.h"

namespace tupelo {

// A pure function of the document lengths.
// kFull (RoBERTa's FULL-SENTENCES): documents follow each other with one [SEP] between, cut every
// sequence_length - 2 tokens; kDocument: rows never cross a document. Every row is
// [CLS] content [SEP]; only a last row may be short (kFull) or any document's last (kDocument).
// kBestFit: a document is cut as for kDocument; its last part, when short, shares a row with
// others, each a sequence [CLS] content [SEP] of its own (data/best_fit.h).
// Rows for sentence pairs (kDocument) have room for one more [SEP], and a document that is longer
// than a row is cut `slack` tokens earlier than it need be, so that each row may begin up to so
// many tokens before its place, where a sentence does (data/sentence_pairs.h).
class RowPlan {
 public:
  // Document d has document_offsets[d + 1] - document_offsets[d] tokens. Throws
  // std::invalid_argument when sequence_length < 4, or 5 with pairs, and for pairs of another
  // packing than kDocument.
  RowPlan(const std::vector<std::uint64_t>& document_offsets, Packing packing,
          std::int64_t sequence_length, bool sentence_pairs = false);
  std::uint64_t rows() const { return rows_; }
  // Of rows for sentence pairs; 64, or a quarter of a row if that is less. Otherwise 0.
  std::uint64_t slack() const { return content_ - step_; }
  bool sentence_pairs() const { return sentence_pairs_; }
  // Whether every piece of a row is a sequence of its own, with its own [CLS] and [SEP].
  bool pieces_are_sequences() const { return packing_ == Packing::kBestFit; }

  struct Piece {  // document tokens [first, first + count), then a [SEP] when `separator`
    std::uint64_t document, first, count;
    bool separator;
  };
  // Pieces of row `row` in order (the [SEP] that ends the row is not among them). A piece may be a
  // lone [SEP]: of a document that fills the row before to its end.
  std::vector<Piece> pieces(std::uint64_t row) const;

 private:
  // How far a document moves the next one's start on.
  std::uint64_t extent_of(std::uint64_t length) const;
  std::vector<Piece> pieces_of_stream(std::uint64_t row) const;
  Piece piece_of_document(std::uint64_t row) const;
  std::vector<Piece> packed_pieces(std::uint64_t row) const;
  std::uint64_t documents() const { return lengths_.size(); }

  Packing packing_;
  bool sentence_pairs_;
  std::uint64_t content_;  // tokens of a row without special ones
  std::uint64_t step_;     // how far apart rows of a long document begin
  std::uint64_t rows_ = 0;
  // Of each document, and the end: kFull: its first position in the stream, separators counted;
  // kDocument: its first row; kBestFit: its first row among those that one document fills.
  std::vector<std::uint64_t> starts_;
  std::vector<std::uint64_t> lengths_;
  Bins shared_;  // kBestFit: the documents whose last parts share a row, which come last
};

}  // namespace tupelo
