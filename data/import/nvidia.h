// Corpora of NVIDIA's BERT recipes (DeepLearningExamples, academic-budget-bert, MLPerf).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "data/corpus_index.h"
#include "data/import/imported_corpus.h"

namespace tupelo {

struct NvidiaImport : ImportOptions {
  // Files, or folders that stand for the .hdf5 and .h5 files in them, by name.
  std::vector<std::filesystem::path> inputs;
  bool keep_duplicates = false;
  // Called from the calling thread now and then; may be empty. Without keep_duplicates each row is
  // read twice.
  std::function<void(std::uint64_t done_rows, std::uint64_t total_rows)> progress = {};
};

// The files that inputs stand for, in their order. Throws std::invalid_argument when there is none.
std::vector<std::filesystem::path> nvidia_files(const std::vector<std::filesystem::path>& inputs);

// Makes the HDF5 library read all structure of such a file that import_nvidia() will: a caller who
// does not trust the library with it may do this first where a crash does no harm. Throws
// CorpusError, std::system_error.
void read_nvidia_structure(const std::filesystem::path& file);

struct NvidiaImportReport {
  CorpusIndex index;
  std::uint64_t rows = 0;
  std::uint64_t duplicates = 0;  // documents that equal an earlier one, left out
  // Rows left out because a [MASK] stands in them for which no token is recorded.
  std::uint64_t unrestored_rows = 0;
};

// Writes the text of the rows as a corpus, each row a document: what masked_lm_ids and
// masked_lm_positions recorded is put back, up to the first position 0; padding goes by input_mask,
// or is what the row ends with, or nothing in rows of varying length; [CLS] and [SEP] are left out.
// A row whose next_sentence_labels is 1 has a second segment from elsewhere, which becomes a
// document of its own; else the labels are not used. Of documents with equal tokens, such as the
// copies that dupe_factor made, the first is kept. Words and the split: ImportedCorpus. Files are
// untrusted: Hdf5Arrays. Memory does not grow with the input; scratch files of 32 bytes a document
// lie in the unfinished corpus once they are many millions.
//
// Source of the layout: NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/BERT,
// create_pretraining_data.py and run_pretraining.py.
//
// Throws CorpusError that names file, dataset and row: what NvidiaRows refuses, or more than one
// row in a hundred that cannot be restored; std::invalid_argument, std::system_error.
NvidiaImportReport import_nvidia(const NvidiaImport& options);

}  // namespace tupelo
