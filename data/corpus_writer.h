// Tokenized documents to shards and index.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "data/corpus_index.h"
#include "data/shard.h"

namespace tupelo {

// Fills train/ and held-out/ of an existing folder. Keeps one shard of each split in memory.
class CorpusWriter {
 public:
  // A shard is closed at the first document past `shard_tokens`.
  CorpusWriter(const std::filesystem::path& folder, const CorpusInfo& info,
               double held_out_fraction, std::uint64_t shard_tokens);

  // A document with at least one token; see ShardContent::add. Its hash decides the split. Throws
  // std::system_error.
  void add(std::span<const std::uint32_t> ids, std::span<const std::uint8_t> word_start,
           std::uint64_t source, std::uint64_t hash, std::span<const std::uint8_t> sent_start = {});

  // The same, in this split whatever the hash says.
  void add_to(Split split, std::span<const std::uint32_t> ids,
              std::span<const std::uint8_t> word_start, std::uint64_t source, std::uint64_t hash,
              std::span<const std::uint8_t> sent_start = {});

  // Closes the last shards and gives all shards their final names. The index holds info, shards,
  // fraction and shard_tokens; its other members are the caller's.
  CorpusIndex finish();

 private:
  struct SplitWriter {
    Split split;
    ShardContent content;
    std::vector<ShardSummary> shards;
  };
  void write_shard(SplitWriter& writer);
  void name_shards(SplitWriter& writer) const;

  std::filesystem::path folder_;
  CorpusInfo info_;
  double held_out_fraction_;
  std::uint64_t shard_tokens_;
  SplitWriter train_, held_out_;
};

// Writes index.json, opens the corpus as a reader will, and gives it its name. Its tokenizer is
// there already. Throws CorpusError, std::system_error.
class UnfinishedCorpus;
void publish_corpus(UnfinishedCorpus& corpus, const CorpusIndex& index);

// Where in the corpus a shard of a split lies; both count from 0 up.
std::string shard_file_name(Split split, std::size_t shard, std::size_t shards);

// Whether a document with this hash is held out.
bool is_held_out(std::uint64_t hash, double fraction);

}  // namespace tupelo
