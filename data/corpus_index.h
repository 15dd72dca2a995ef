// index.json: what a corpus consists of.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/corpus.h"
#include "data/prepare.h"

namespace tupelo {

struct CorpusIndex {
  struct Source {
    std::string file;
    std::uint64_t bytes = 0;
    SourceReport report = {};  // zeros in a corpus that does not say
  };

  CorpusInfo info;
  std::vector<ShardSummary> train, held_out;
  // Provenance, for people; readers of shards do not need it.
  std::vector<Source> sources;
  double held_out_fraction = 0;
  std::uint64_t shard_tokens = 0;
  std::uint64_t input_bytes = 0, invalid_bytes = 0, empty_documents = 0, unknown_tokens = 0;

  const std::vector<ShardSummary>& shards(Split split) const {
    return split == Split::kTrain ? train : held_out;
  }
};

// SHA-256 (hex) over "<hex digest>\n" of every shard: train, then held-out, each in order.
std::string corpus_digest(const CorpusIndex& index);

// The text of index.json. The digest is computed, not taken from `index.info`.
std::string format_corpus_index(const CorpusIndex& index);

// A shard's entry in index.json by itself.
std::string format_shard_summary(const ShardSummary& shard);
// Throws CorpusError that names the file and the key.
ShardSummary read_shard_summary(const std::filesystem::path& file);

// Throws CorpusError that names the file and the key.
CorpusIndex read_corpus_index(const std::filesystem::path& corpus);

// index.json as it stands. Throws CorpusError.
std::string read_corpus_index_text(const std::filesystem::path& corpus);

}  // namespace tupelo
