// Rows of a BERT corpus as NVIDIA's scripts store it, with what had been masked put back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/hdf5_arrays.h"
#include "data/import/number_rows.h"
#include "data/regular_file.h"
#include "data/tokenizer/tokenizer.h"

namespace tupelo {

struct NvidiaRow {
  // Without [CLS], [SEP] and padding; one for each [SEP]. None is empty.
  std::vector<std::vector<std::uint32_t>> segments;
  bool random_next = false;  // the second segment comes from elsewhere
  bool restored = true;      // false: a [MASK] is left whose token is not recorded
};

// One file: input_ids, masked_lm_positions and masked_lm_ids of equally many rows; input_mask and
// next_sentence_labels may be missing, all others are not looked at. Rows are of one length
// ([N,L], [N,P]) or of lengths of their own. Integers of any width; stored contiguously or in
// chunks, compressed by gzip or not.
class NvidiaRows {
 public:
  // Throws CorpusError that names file and dataset, std::system_error.
  NvidiaRows(const std::filesystem::path& file, const Tokenizer& tokenizer);

  std::uint64_t rows() const { return rows_; }
  std::uint64_t bytes() const { return file_.bytes(); }
  // Ascending rows are read fastest. Throws CorpusError that names file, dataset and row: a row
  // that does not begin with [CLS], an id outside the vocabulary, a position outside the row.
  void read(std::uint64_t row, NvidiaRow& result);

 private:
  std::unique_ptr<NumberRows> open(const std::string& name);
  std::size_t length_of(std::uint64_t row);
  void restore(std::uint64_t row, std::size_t length);
  std::uint32_t id_of(std::int64_t number, const char* dataset, std::uint64_t row) const;
  [[noreturn]] void refuse(const std::string& dataset, std::uint64_t row,
                           const std::string& what) const;

  Hdf5Arrays arrays_;
  RegularFile file_;
  const Tokenizer& tokenizer_;
  std::uint64_t rows_ = 0;
  bool varying_ = false;
  std::unique_ptr<NumberRows> ids_, mask_, positions_, masked_ids_, labels_;  // may be null
  std::vector<std::int64_t> row_, masks_, places_, originals_, label_;
};

}  // namespace tupelo
