// One file of a corpus: the layout in data/FORMAT.md, written and read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/corpus.h"
#include "data/hdf5.h"
#include "data/mapped_file.h"

namespace tupelo {

std::string split_name(Split split);  // "train", "held-out"

// What a shard says about the corpus that it belongs to.
struct ShardIdentity {
  std::string split, language, tokenizer_kind, tokenizer_fingerprint;
  std::string segmenter_kind, segmenter_fingerprint;  // empty when there is none
  std::uint64_t sentence_rules = 0;                   // 0: no sentence starts
  std::uint32_t vocab_size = 0;
  SpecialTokens special;
};
ShardIdentity shard_identity(const CorpusInfo& info, Split split);

// The documents of a shard that is being filled.
class ShardContent {
 public:
  explicit ShardContent(std::uint32_t vocab_size);

  // `ids` and `word_start` (0 or 1) have one entry per token, at least one, and `sent_start`, too,
  // if the shard's identity has sentence rules. `source` counts the input files from 0.
  void add(std::span<const std::uint32_t> ids, std::span<const std::uint8_t> word_start,
           std::uint64_t source, std::uint64_t hash, std::span<const std::uint8_t> sent_start);
  std::uint64_t tokens() const { return tokens_; }
  std::uint64_t documents() const { return hashes_.size(); }

  // Writes a new file, syncs it and compares what the disk holds with what was meant. The summary's
  // file name is left empty. Throws std::system_error.
  ShardSummary write(const std::filesystem::path& file, const ShardIdentity& identity) const;

 private:
  ElementType token_type_;
  std::uint64_t tokens_ = 0;
  std::vector<std::byte> token_bytes_;
  std::vector<std::uint8_t> word_bits_, sentence_bits_;
  std::vector<std::uint64_t> offsets_{0}, hashes_;
  std::vector<std::uint16_t> sources_;
};

// SHA-256 (hex) of the bytes of a file outside `payload`; empty when the ranges do not ascend
// within it.
std::string structure_digest(std::span<const std::byte> file,
                             const std::vector<ByteRange>& payload);

// A shard opened for reading; memory-mapped. Any thread may call the members.
class Shard {
 public:
  // Checks the structure, that it is complete, that its documents fit its tokens and that it
  // belongs to `identity`. Throws CorpusError that names file and dataset or attribute.
  Shard(const std::filesystem::path& file, const ShardIdentity& identity);

  std::uint64_t bytes() const { return file_.bytes().size(); }
  std::uint64_t tokens() const { return tokens_.count; }
  std::uint64_t documents() const { return doc_hash_.count; }
  // Of document `d` <= documents(): its first token.
  std::uint64_t offset(std::uint64_t document) const;
  std::uint64_t hash(std::uint64_t document) const;
  std::uint16_t source(std::uint64_t document) const;

  // Tokens [first, first + count) of the shard.
  void read(std::uint64_t first, std::uint64_t count, std::uint32_t* ids) const;
  bool begins_word(std::uint64_t token) const;
  bool has_sentences() const { return sent_start_.count > 0; }
  bool begins_sentence(std::uint64_t token) const;  // only if has_sentences()

  // Compares every dataset with its digest and every token with the size of the vocabulary, then
  // the whole file with `sha256`. Throws CorpusError that names file and dataset.
  void verify(const std::string& sha256) const;

 private:
  bool bit(const DatasetPlace& place, std::uint64_t index) const;
  const std::byte* at(const DatasetPlace& place, std::uint64_t index) const;
  void check_sizes(std::uint64_t tokens, std::uint64_t documents) const;
  void check_offsets() const;
  void check_ids() const;
  void check_digest(const char* name, const DatasetPlace& place) const;
  [[noreturn]] void refuse(const std::string& what) const;

  std::filesystem::path path_;
  std::uint32_t vocab_size_;
  MappedFile file_;
  DatasetPlace tokens_, doc_offsets_, word_start_, doc_source_, doc_hash_;
  DatasetPlace sent_start_;  // of no elements where there is none
};

}  // namespace tupelo
