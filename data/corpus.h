// A sharded corpus, opened for reading.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "data/bad_shard.h"
#include "data/document_table.h"
#include "data/errors.h"
#include "data/tokenizer/tokenizer.h"

namespace tupelo {

enum class Split { kTrain, kHeldOut };

// When the shards of a corpus are opened and checked: at once, or each when it is first read.
enum class Open { kNow, kWhenRead };

// What found the words of a corpus.
struct SegmenterInfo {
  struct File {
    std::string file, sha256;
  };
  std::string kind;         // empty: the tokenizer alone; "spaces"; "dictionary"
  std::string fingerprint;  // of a dictionary: see Segmenter::fingerprint
  std::vector<File> files;  // the dictionary, then the user's
};

struct CorpusInfo {
  std::string language;
  std::string tokenizer_kind;
  std::string tokenizer_fingerprint;
  std::uint32_t vocab_size = 0;
  SpecialTokens special;
  std::vector<std::uint32_t> reserved_ids;  // sorted; see Tokenizer::reserved_ids
  SegmenterInfo segmenter = {};
  std::uint64_t sentence_rules = 0;  // which rules found the sentences; 0: none did
  std::string digest;                // SHA-256 (hex) over the digests of all shards of both splits
};

struct ByteRange {
  std::uint64_t first = 0, bytes = 0;
};

struct ShardSummary {
  std::string file;  // relative to the corpus
  std::uint64_t bytes = 0, tokens = 0, documents = 0;
  std::string sha256;
  // Where the elements of its datasets lie, ascending, and the SHA-256 of all other bytes: what the
  // HDF5 library reads can be checked before it does.
  std::vector<ByteRange> payload;
  std::string structure_sha256;
};

// Read-only view of one split. Whatever is read has been compared with its checksum; what is
// damaged, or was changed since it was opened, is a CorpusError that names the file. An error of
// opening or reading a shard that is not the process's own (such as too many open files) is a
// BadShard as well. Any thread may call const members.
// Documents are numbered through the shards in order, from 0; token offsets count from the start of
// a document.
class ShardedCorpus {
 public:
  // Checks index and the structure and size of every shard, not the content. Throws CorpusError
  // that names the file, or std::system_error. With kWhenRead it reads the index alone: what reads
  // a shard for the first time checks it, and throws the same.
  ShardedCorpus(const std::filesystem::path& folder, Split split, Open open = Open::kNow);
  ~ShardedCorpus();
  ShardedCorpus(ShardedCorpus&&) noexcept;
  ShardedCorpus& operator=(ShardedCorpus&&) noexcept;

  // What the corpus would be if it had been made without these shards (ShardSummary::file; names of
  // no shard change nothing): documents are numbered through the others. Its info() stays that of
  // the whole corpus. Reads no file; shards that are open stay so.
  ShardedCorpus without(const std::set<std::string>& files) const;

  const CorpusInfo& info() const;
  const std::vector<ShardSummary>& shards() const;
  std::uint64_t documents() const;
  std::uint64_t tokens() const;
  // Documents by shard; may outlive the corpus.
  std::shared_ptr<const DocumentTable> document_table() const;
  // Tokens of document `d`.
  std::uint64_t length(std::uint64_t document) const;
  // Tokens of document `d` start at this position of the split's token stream; size documents()
  // + 1. Opens every shard and is made when it is first asked for.
  const std::vector<std::uint64_t>& document_offsets() const;
  // How many shards were opened so far.
  std::size_t open_shards() const;

  // Copies tokens [first, first + count) of document `d`.
  void read(std::uint64_t document, std::uint64_t first, std::uint64_t count,
            std::uint32_t* tokens) const;
  // Whether token `offset` of document `d` begins a word.
  bool begins_word(std::uint64_t document, std::uint64_t offset) const;
  // begins_word of tokens [first, first + count) of document `d`, as 0 or 1.
  void read_word_starts(std::uint64_t document, std::uint64_t first, std::uint64_t count,
                        std::uint8_t* flags) const;

  // Whether tokens [first, first + count) of document `d` begin a sentence, as 0 or 1. Throws
  // CorpusError when the corpus was made without sentences.
  void read_sentence_starts(std::uint64_t document, std::uint64_t first, std::uint64_t count,
                            std::uint8_t* flags) const;

  // See document_hash() in data/document_text.h.
  std::uint64_t hash(std::uint64_t document) const;
  // Which input file document `d` came from, counted from 0; 65535 stands for all later ones.
  std::uint64_t source(std::uint64_t document) const;

  // Re-hashes one shard. Throws CorpusError that names file and dataset.
  void verify_shard(std::size_t shard) const;
  // Whether the file of a shard is, to the byte, the one that info().digest vouches for: what is
  // wrong about it is then said elsewhere, such as in index.json. Reads the whole file; false when
  // that fails.
  bool shard_has_its_digest(std::size_t shard) const;

  // The tokenizer stored beside the shards; its fingerprint is checked against the index.
  static std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder);
  // index.json as it stands, for display. Throws CorpusError.
  static std::string index_json(const std::filesystem::path& folder);

 private:
  struct State;
  explicit ShardedCorpus(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

}  // namespace tupelo
