// One file of a corpus: the layout in data/FORMAT.md, written and read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/checked_file.h"
#include "data/corpus.h"
#include "data/element_type.h"

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
// within it or leave out more than 1 MiB.
std::string structure_digest(const RegularFile& file, const std::vector<ByteRange>& payload);

// Where the datasets of a shard lie.
struct ShardDatasets {
  CheckedDataset tokens, doc_offsets, word_start, doc_source, doc_hash;
  CheckedDataset sent_start;  // of no elements where there is none
  DatasetPlace block_sums;

  // Those that are there, in the order of their checksums.
  std::vector<const CheckedDataset*> checked() const;
};

// Checks the structure of a shard, that it is complete, that its counts fit and that it belongs to
// `identity`. Throws CorpusError that names file and dataset or attribute.
ShardDatasets find_shard_datasets(const RegularFile& file, const ShardIdentity& identity);

// A shard opened for reading. Its file stays open. Whatever is read has been compared with its
// checksum (data/checked_file.h), and token ids with the size of the vocabulary; what does not pass
// is a CorpusError that names file and dataset. Where the system refuses, std::system_error.
// Reading what is not there is std::out_of_range. Any thread may call the members.
class Shard {
 public:
  // Besides find_shard_datasets(), checks the checksums by their SHA-256, and that documents fit
  // the tokens.
  Shard(const std::filesystem::path& file, const ShardIdentity& identity);
  // The same for the shard that index.json describes so: its size, structure and counts must fit.
  Shard(const std::filesystem::path& file, const ShardIdentity& identity,
        const ShardSummary& summary);

  std::uint64_t bytes() const { return file_.file().bytes(); }
  std::uint64_t tokens() const { return datasets_.tokens.place.count; }
  std::uint64_t documents() const { return datasets_.doc_hash.place.count; }
  // Of document `d` <= documents(): its first token.
  std::uint64_t offset(std::uint64_t document) const;
  // The same of documents [first, first + count).
  void read_offsets(std::uint64_t first, std::uint64_t count, std::uint64_t* offsets) const;
  std::uint64_t hash(std::uint64_t document) const;
  std::uint16_t source(std::uint64_t document) const;

  // Tokens [first, first + count) of the shard.
  void read(std::uint64_t first, std::uint64_t count, std::uint32_t* ids) const;
  // Whether they begin a word, or a sentence, as 0 or 1.
  void read_word_starts(std::uint64_t first, std::uint64_t count, std::uint8_t* flags) const;
  bool has_sentences() const { return datasets_.sent_start.place.count > 0; }
  void read_sentence_starts(std::uint64_t first, std::uint64_t count, std::uint8_t* flags) const;

  // Reads all there is and compares every dataset with its digest, too, then the whole file with
  // `sha256`.
  void verify(const std::string& sha256) const;

 private:
  Shard(RegularFile&& file, const ShardIdentity& identity);
  Shard(RegularFile&& file, const ShardDatasets& datasets, std::uint32_t vocab_size);
  void check_range(std::uint64_t first, std::uint64_t count, std::uint64_t all) const;
  void check_offsets() const;
  void check_ids() const;
  void check_digest(const CheckedDataset& dataset) const;
  template <typename Integer>
  void read_elements(const CheckedDataset& dataset, std::uint64_t first, std::uint64_t count,
                     Integer* elements) const;
  template <typename Integer>
  void read_tokens(std::uint64_t first, std::uint64_t count, std::uint32_t* ids) const;
  void read_bits(const CheckedDataset& dataset, std::uint64_t first, std::uint64_t count,
                 std::uint8_t* flags) const;
  [[noreturn]] void refuse_id(std::uint64_t first, std::span<const std::uint32_t> ids) const;
  [[noreturn]] void refuse(const std::string& what) const;

  CheckedFile file_;
  ShardDatasets datasets_;
  std::uint32_t vocab_size_;
};

}  // namespace tupelo
