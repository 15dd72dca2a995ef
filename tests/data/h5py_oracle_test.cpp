// What h5py reads from a corpus is what we read.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <sstream>

#include "data/content_digest.h"
#include "data/shard.h"
#include "tests/data/sample_corpus.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string output;
  std::array<char, 4096> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    output.append(buffer.data(), got);
  }
  return output;
}

std::string read_by_us(const fs::path& folder, Split split) {
  const CorpusIndex index = read_corpus_index(folder);
  std::uint64_t documents = 0, tokens = 0;
  ContentDigest ids, words, hashes;
  for (const ShardSummary& summary : index.shards(split)) {
    const Shard shard(folder / summary.file, shard_identity(index.info, split));
    documents += shard.documents();
    tokens += shard.tokens();
    std::vector<std::uint32_t> shard_ids(shard.tokens());
    shard.read(0, shard_ids.size(), shard_ids.data());
    ids.update(shard_ids.data(), shard_ids.size() * sizeof(shard_ids[0]));
    std::vector<std::uint8_t> starts(shard.tokens());
    shard.read_word_starts(0, starts.size(), starts.data());
    words.update(starts.data(), starts.size());
    for (std::uint64_t d = 0; d < shard.documents(); ++d) {
      const std::uint64_t hash = shard.hash(d);
      hashes.update(&hash, sizeof(hash));
    }
  }
  std::ostringstream text;
  text << documents << "\n"
       << tokens << "\n"
       << ids.finish_hex() << "\n"
       << words.finish_hex() << "\n"
       << hashes.finish_hex() << "\n";
  return text.str();
}

TEST(H5py, ReadsTheSameCorpus) {
  for (const std::uint32_t vocab_size : {400u, 100000u}) {
    const TemporaryFolder folder;
    write_sample_corpus(folder / "c", sample_documents(11, 2000, 300, vocab_size), 0.1, 50000,
                        sample_info(vocab_size));
    for (const Split split : {Split::kTrain, Split::kHeldOut}) {
      const std::string command = std::string(TUPELO_PYTHON) + " " + TUPELO_TEST_DATA +
                                  "/read_with_h5py.py " + (folder / "c").string() + " " +
                                  split_name(split);
      EXPECT_EQ(output_of(command), read_by_us(folder / "c", split));
    }
  }
}

}  // namespace
}  // namespace tupelo
