#include "data/corpus_rewrite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "data/prepare.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::corpus_rewrite_test {
namespace {

namespace fs = std::filesystem;

const char* const kCharacters = "天地玄黄宇宙洪荒日月盈昃辰宿列张";

// Prepared from Chinese-looking text, so that there is a tokenizer to decode with.
void prepare(const TemporaryFolder& folder, const std::string& name, std::uint64_t seed,
             double held_out = 0.2) {
  std::string text;
  std::uint64_t state = seed;
  for (int document = 0; document < 60; ++document) {
    const int length = 3 + static_cast<int>((state >> 33) % 30);
    for (int i = 0; i < length; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text.append(kCharacters + 3 * ((state >> 33) % 16), 3);
    }
    text += "\n\n";
  }
  write_bytes(folder / (name + ".txt"), text);
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int i = 0; i < 16; ++i) vocabulary += std::string(kCharacters + 3 * i, 3) + "\n";
  write_bytes(folder / "vocab.txt", vocabulary);
  PrepareOptions options;
  options.inputs = {folder / (name + ".txt")};
  options.output = folder / name;
  options.vocab_file = folder / "vocab.txt";
  options.held_out = held_out;
  options.shard_tokens = 300;
  prepare_corpus(options);
}

struct Document {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint8_t> starts;
  std::uint64_t hash;
  bool operator==(const Document&) const = default;
};

std::vector<Document> documents_of(const fs::path& folder, Split split) {
  const ShardedCorpus corpus(folder, split);
  std::vector<Document> documents;
  for (std::uint64_t d = 0; d < corpus.documents(); ++d) {
    const std::uint64_t length = corpus.document_offsets()[d + 1] - corpus.document_offsets()[d];
    Document document{std::vector<std::uint32_t>(length), std::vector<std::uint8_t>(length),
                      corpus.hash(d)};
    corpus.read(d, 0, length, document.ids.data());
    corpus.read_word_starts(d, 0, length, document.starts.data());
    documents.push_back(document);
  }
  return documents;
}

TEST(MergeCorpora, HoldsTheDocumentsOfAllInOrder) {
  const TemporaryFolder folder;
  prepare(folder, "a", 1);
  prepare(folder, "b", 2);
  const CorpusIndex index = merge_corpora({folder / "a", folder / "b"}, folder / "c", {});
  for (const Split split : {Split::kTrain, Split::kHeldOut}) {
    std::vector<Document> expected = documents_of(folder / "a", split);
    const std::vector<Document> more = documents_of(folder / "b", split);
    expected.insert(expected.end(), more.begin(), more.end());
    EXPECT_GT(expected.size(), 10u);
    EXPECT_EQ(documents_of(folder / "c", split), expected);
  }
  EXPECT_EQ(index.sources.size(), 2u);
  const ShardedCorpus train(folder / "c", Split::kTrain);
  EXPECT_EQ(train.source(0), 0u);
  EXPECT_EQ(train.source(train.documents() - 1), 1u);
  EXPECT_EQ(train.shards().size(), 1u);
}

TEST(MergeCorpora, OfOneCorpusChangesItsShardsOnly) {
  const TemporaryFolder folder;
  prepare(folder, "a", 1);
  merge_corpora({folder / "a"}, folder / "whole", {});
  EXPECT_NE(tree_of(folder / "whole"), tree_of(folder / "a"));
  RewriteOptions options;
  options.shard_tokens = 300;
  std::uint64_t told = 0;
  options.progress = [&](std::uint64_t done, std::uint64_t) { told = done; };
  merge_corpora({folder / "whole"}, folder / "back", options);
  EXPECT_EQ(tree_of(folder / "back"), tree_of(folder / "a"));
}

TEST(MergeCorpora, RefusesWhatDoesNotBelongTogether) {
  const TemporaryFolder folder;
  prepare(folder, "a", 1);
  prepare(folder, "other-share", 2, 0.1);
  const auto error = [&](const std::string& other, const std::string& output) {
    return message_of<std::invalid_argument>([&] {
      merge_corpora({folder / "a", folder / other}, folder / output, {});
    });
  };
  EXPECT_NE(error("other-share", "c").find("held-out fractions"), std::string::npos);
  EXPECT_NE(error("a", "a").find("one of the inputs"), std::string::npos);
  EXPECT_NE(error("a", "c").find("are the same"), std::string::npos);
  EXPECT_THROW(merge_corpora({}, folder / "c", {}), std::invalid_argument);
  EXPECT_FALSE(fs::exists(folder / "c"));
  const ShardedCorpus corpus(folder / "a", Split::kTrain);
  flip_bit(folder / "a" / corpus.shards()[0].file, corpus.shards()[0].payload[0].first);
  message_of<CorpusError>([&] { merge_corpora({folder / "a"}, folder / "c", {}); });
  EXPECT_FALSE(fs::exists(folder / "c"));
  EXPECT_EQ(tree_of(folder.path()).size(),
            tree_of(folder / "a").size() + tree_of(folder / "other-share").size() + 3);
}

TEST(SplitCorpus, PartsAreTheWholeInOrder) {
  const TemporaryFolder folder;
  prepare(folder, "a", 3);
  for (const std::uint64_t parts : {1u, 3u, 7u}) {
    RewriteOptions options;
    options.force = true;
    const auto folders = split_corpus(folder / "a", folder / "part", parts, options);
    ASSERT_EQ(folders.size(), parts);
    EXPECT_EQ(folders.back().filename().string(),
              "part-0000" + std::to_string(parts - 1) + "-of-0000" + std::to_string(parts));
    for (const Split split : {Split::kTrain, Split::kHeldOut}) {
      std::vector<Document> joined;
      const std::uint64_t whole = ShardedCorpus(folder / "a", split).tokens();
      for (const fs::path& part : folders) {
        const std::vector<Document> some = documents_of(part, split);
        joined.insert(joined.end(), some.begin(), some.end());
        EXPECT_LE(ShardedCorpus(part, split).tokens(), whole / parts + 60);
      }
      EXPECT_EQ(joined, documents_of(folder / "a", split));
    }
  }
  EXPECT_NE(message_of<std::invalid_argument>([&] {
              split_corpus(folder / "a", folder / "p", 1000, {});
            }).find("1000 parts"),
            std::string::npos);
}

TEST(DecodeDocuments, GivesBackTheText) {
  const TemporaryFolder folder;
  prepare(folder, "a", 4, 0.0);
  std::string text;
  decode_documents(folder / "a", Split::kTrain, 0, ~std::uint64_t{0},
                   [&](std::uint64_t, const std::string& document) { text += document + "\n\n"; });
  EXPECT_EQ(text, read_bytes(folder / "a.txt"));
  std::vector<std::uint64_t> numbers;
  decode_documents(
      folder / "a", Split::kTrain, 2, 3,
      [&](std::uint64_t document, const std::string&) { numbers.push_back(document); });
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{2, 3, 4}));
}

}  // namespace
}  // namespace tupelo::corpus_rewrite_test
