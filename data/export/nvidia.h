// A corpus in the layout of NVIDIA's BERT recipes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "data/corpus.h"
#include "data/data_options.h"

namespace tupelo {

struct NvidiaExport {
  std::filesystem::path corpus, output;
  // Of these: sequence_length, packing (kFull or kDocument), seed, and all that says how tokens are
  // masked.
  DataOptions rows;
  std::uint64_t max_predictions = 80;
  std::uint64_t duplicates = 1;         // times that each row is written, masked anew
  std::uint64_t rows_per_file = 65536;  // at most 2^20
  bool force = false;
  std::function<void(std::uint64_t done_rows, std::uint64_t total_rows)> progress = {};
};

struct NvidiaExportReport {
  std::uint64_t train_rows = 0, held_out_rows = 0, files = 0;
  std::uint64_t tokens = 0;  // of the corpus, all copies, without [CLS] and [SEP]
  std::uint64_t masked_tokens = 0;
  std::uint64_t unmasked_tokens = 0;  // chosen, but beyond max_predictions in their row
};

// Writes the folder `output`: corpus_training_00000.hdf5, ... of the documents to train on,
// corpus_test_00000.hdf5, ... of those held out, and export.json, which says what was done. A file
// has N rows in six datasets, compressed by gzip: input_ids int32 [N,T], input_mask and segment_ids
// int8 [N,T], masked_lm_positions and masked_lm_ids int32 [N,P], both filled up with 0,
// next_sentence_labels int8 [N]. A row is one segment, [CLS] tokens [SEP], then [PAD]; segment_ids
// and next_sentence_labels are 0 throughout. Copy k of a row is masked as in epoch k of training
// with the same seed, but at most max_predictions tokens (see StaticRows). Rows are in the order of
// the corpus, copy after copy. Memory: one file. The same corpus and options give the same bytes;
// the folder appears whole or not at all. Throws std::invalid_argument, CorpusError,
// std::system_error.
NvidiaExportReport export_nvidia(const NvidiaExport& options);

}  // namespace tupelo
