// Corpora of Megatron-LM: PREFIX.bin and PREFIX.idx.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/corpus_index.h"

namespace tupelo {

struct MegatronImport {
  std::vector<std::filesystem::path> prefixes;  // each PREFIX, PREFIX.idx or PREFIX.bin
  std::filesystem::path tokenizer;  // as load_tokenizer() takes it; the one that made the ids
  bool lowercase = true;            // of a vocab.txt that does not say
  std::filesystem::path output;
  double held_out = 0.01;
  std::uint64_t shard_tokens = 64u << 20;
  std::string language = "zh";
  bool force = false;
};

// Writes the documents as a corpus. Sequences of a document follow each other. Special tokens (but
// not the unknown one) and other reserved ids, which Megatron puts at the end of documents, are
// left out. A word begins at a token that does not begin with "##" (WordPiece), or begins with the
// mark of a space or behind a sequence's start (byte-level BPE, SentencePiece). A document is held
// out by the hash of its decoded text.
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
