// A corpus of one training shard that a test may spoil.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "data/content_digest.h"
#include "data/corpus.h"
#include "data/corpus_files.h"
#include "data/shard.h"
#include "tests/data/resigned_shard.h"
#include "tests/data/sample_corpus.h"

namespace tupelo {

class SpoiledCorpus : public testing::Test {
 protected:
  explicit SpoiledCorpus(std::vector<SampleDocument> documents, std::uint64_t sentence_rules = 0)
      : documents_(std::move(documents)) {
    CorpusInfo info = sample_info();
    info.sentence_rules = sentence_rules;
    index_ = write_sample_corpus(corpus_, documents_, 0, 1u << 20, info);
    shard_ = corpus_ / index_.train[0].file;
    sound_ = read_bytes(shard_);
    datasets_ = find_shard_datasets(RegularFile(shard_), identity());
  }

  ShardIdentity identity() const { return shard_identity(index_.info, Split::kTrain); }

  // Opens the corpus, then re-hashes the shard.
  void open_and_verify() const { ShardedCorpus(corpus_, Split::kTrain).verify_shard(0); }

  // Makes index.json agree with the spoiled file, as its author would.
  void adapt_index() const {
    CorpusIndex index = index_;
    const std::string bytes = read_bytes(shard_);
    index.train[0].bytes = bytes.size();
    index.train[0].sha256 = sha256_hex_of(bytes.data(), bytes.size());
    index.train[0].payload.clear();
    index.train[0].structure_sha256 = index.train[0].sha256;
    write_bytes(corpus_ / "index.json", format_corpus_index(index));
  }

  // Other content for the shard, with all that vouches for it.
  void write_as_author(std::string bytes) const {
    resign(bytes, datasets_);
    write_bytes(shard_, bytes);
    adapt_index();
  }

  TemporaryFolder folder_;
  std::filesystem::path corpus_ = folder_ / "corpus", shard_;
  std::vector<SampleDocument> documents_;
  CorpusIndex index_;
  std::string sound_;  // the shard's bytes
  ShardDatasets datasets_;
};

}  // namespace tupelo
