// Corpora of Megatron-LM: PREFIX.bin and PREFIX.idx.
#pragma once

#include <filesystem>
#include <vector>

#include "data/corpus_index.h"
#include "data/import/imported_corpus.h"

namespace tupelo {

struct MegatronImport : ImportOptions {
  std::vector<std::filesystem::path> prefixes;  // each PREFIX, PREFIX.idx or PREFIX.bin
};

// Writes the documents as a corpus. Sequences of a document follow each other. Special tokens (but
// not the unknown one) and other reserved ids, which Megatron puts at the end of documents, are
// left out. Words and the split: ImportedCorpus.
//
// Source of the layout: NVIDIA/Megatron-LM, megatron/core/datasets/indexed_dataset.py:
// "MMIDIDX\0\0", version 1 (uint64), type of the ids (uint8), numbers of sequences and of document
// boundaries (uint64), lengths (int32), places in the .bin file (int64), boundaries counted in
// sequences (int64); what may follow (modes) is ignored. All little-endian.
//
// Throws CorpusError that names file and what is wrong: not this layout, a size or place that does
// not fit, an id outside the vocabulary, no document with a token; std::invalid_argument,
// std::system_error.
CorpusIndex import_megatron(const MegatronImport& options);

}  // namespace tupelo
