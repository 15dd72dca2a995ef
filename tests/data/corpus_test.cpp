#include "data/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "data/content_digest.h"
#include "data/corpus_writer.h"
#include "data/hdf5_reader.h"
#include "data/shard.h"
#include "data/stored_tokenizer.h"
#include "data/tokenizer/byte_bpe_trainer.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::corpus_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<SampleDocument> of_split(const std::vector<SampleDocument>& documents, Split split,
                                     double held_out) {
  std::vector<SampleDocument> result;
  for (const SampleDocument& document : documents) {
    const bool is_out = is_held_out(document.hash, held_out);
    if (is_out == (split == Split::kHeldOut)) result.push_back(document);
  }
  return result;
}

void expect_same_documents(const ShardedCorpus& corpus,
                           const std::vector<SampleDocument>& documents) {
  ASSERT_EQ(corpus.documents(), documents.size());
  ASSERT_EQ(corpus.document_offsets().size(), documents.size() + 1);
  std::uint64_t offset = 0;
  for (std::size_t d = 0; d < documents.size(); ++d) {
    EXPECT_EQ(corpus.document_offsets()[d], offset);
    const std::uint64_t length = documents[d].ids.size();
    std::vector<std::uint32_t> ids(length);
    corpus.read(d, 0, length, ids.data());
    EXPECT_EQ(ids, documents[d].ids);
    std::vector<std::uint8_t> starts(length);
    corpus.read_word_starts(d, 0, length, starts.data());
    EXPECT_EQ(starts, documents[d].word_start);
    EXPECT_EQ(corpus.begins_word(d, length / 2), documents[d].word_start[length / 2] == 1);
    std::uint32_t last = 0;
    corpus.read(d, length - 1, 1, &last);
    EXPECT_EQ(last, documents[d].ids.back());
    offset += length;
  }
  EXPECT_EQ(corpus.tokens(), offset);
}

TEST(ShardedCorpus, ReturnsWhatWasWritten) {
  for (const std::uint32_t vocab_size : {400u, 65536u, 65537u, 200000u}) {
    const TemporaryFolder folder;
    const auto documents = sample_documents(1, 500, 40, vocab_size);
    write_sample_corpus(folder / "c", documents, 0.1, 2000, sample_info(vocab_size));
    for (const Split split : {Split::kTrain, Split::kHeldOut}) {
      const ShardedCorpus corpus(folder / "c", split);
      expect_same_documents(corpus, of_split(documents, split, 0.1));
      for (std::size_t s = 0; s < corpus.shards().size(); ++s) corpus.verify_shard(s);
    }
    const ElementType type = vocab_size <= 65536 ? ElementType::kUint16 : ElementType::kUint32;
    const ShardedCorpus corpus(folder / "c", Split::kTrain);
    const RegularFile file(folder / "c" / corpus.shards()[0].file);
    EXPECT_NO_THROW(Hdf5Reader(file).dataset("tokens", {type}));
  }
}

TEST(ShardedCorpus, ShardsCloseAtTheFirstDocumentPastTheirSize) {
  const TemporaryFolder folder;
  const auto documents = sample_documents(2, 300, 50);
  write_sample_corpus(folder / "c", documents, 0.2, 1000);
  const ShardedCorpus corpus(folder / "c", Split::kTrain);
  const auto& shards = corpus.shards();
  ASSERT_GT(shards.size(), 3u);
  for (std::size_t s = 0; s < shards.size(); ++s) {
    EXPECT_LT(shards[s].tokens, 1050u);
    if (s + 1 < shards.size()) {
      EXPECT_GE(shards[s].tokens, 1000u);
    }
    char name[64];
    std::snprintf(name, sizeof(name), "train/shard-%05zu-of-%05zu.h5", s, shards.size());
    EXPECT_EQ(shards[s].file, name);
    EXPECT_EQ(shards[s].bytes, fs::file_size(folder / "c" / name));
  }
}

TEST(ShardedCorpus, LargeDatasetsBeginAtPages) {
  const TemporaryFolder folder;
  write_sample_corpus(folder / "c", sample_documents(3, 100, 2000), 0, 1u << 20);
  const RegularFile file(folder / "c" / "train/shard-00000-of-00001.h5");
  EXPECT_EQ(Hdf5Reader(file).dataset("tokens", {ElementType::kUint16}).offset, 4096u);
}

TEST(ShardedCorpus, KeepsSourceAndHashOfDocuments) {
  const TemporaryFolder folder;
  auto documents = sample_documents(4, 50, 40);
  documents[7].source = 65535;
  documents[8].source = 100000;
  const CorpusIndex index = write_sample_corpus(folder / "c", documents, 0, 1u << 20);
  const Shard shard(folder / "c" / index.train[0].file, shard_identity(index.info, Split::kTrain));
  for (std::size_t d = 0; d < documents.size(); ++d) {
    EXPECT_EQ(shard.hash(d), documents[d].hash);
    EXPECT_EQ(shard.source(d), std::min<std::uint64_t>(documents[d].source, 65535));
  }
}

TEST(ShardedCorpus, SplitFollowsTheHash) {
  EXPECT_FALSE(is_held_out(0, 0));
  EXPECT_TRUE(is_held_out(0, 1e-9));
  EXPECT_TRUE(is_held_out((std::uint64_t{1} << 63) - 1, 0.5));
  EXPECT_FALSE(is_held_out(std::uint64_t{1} << 63, 0.5));
  EXPECT_FALSE(is_held_out(~std::uint64_t{0}, 0.999));
}

TEST(ShardedCorpus, AnEmptySplitHasNoDocuments) {
  const TemporaryFolder folder;
  write_sample_corpus(folder / "c", sample_documents(5, 20, 20), 0);
  const ShardedCorpus corpus(folder / "c", Split::kHeldOut);
  EXPECT_EQ(corpus.documents(), 0u);
  EXPECT_EQ(corpus.tokens(), 0u);
  EXPECT_TRUE(corpus.shards().empty());
}

TEST(ShardedCorpus, DigestFollowsFromTheShards) {
  const TemporaryFolder folder;
  const CorpusIndex index = write_sample_corpus(folder / "c", sample_documents(6, 200, 40));
  std::string lines;
  for (const auto* shards : {&index.train, &index.held_out}) {
    for (const ShardSummary& shard : *shards) {
      const std::string bytes = read_bytes(folder / "c" / shard.file);
      EXPECT_EQ(shard.sha256, sha256_hex_of(bytes.data(), bytes.size()));
      lines += shard.sha256 + "\n";
    }
  }
  const std::string digest = sha256_hex_of(lines.data(), lines.size());
  EXPECT_EQ(ShardedCorpus(folder / "c", Split::kTrain).info().digest, digest);
  EXPECT_EQ(ShardedCorpus(folder / "c", Split::kHeldOut).info().digest, digest);
}

TEST(ShardedCorpus, EqualDocumentsGiveEqualBytes) {
  const TemporaryFolder folder;
  write_sample_corpus(folder / "a", sample_documents(7, 200, 40));
  write_sample_corpus(folder / "b", sample_documents(7, 200, 40));
  EXPECT_EQ(tree_of(folder / "a"), tree_of(folder / "b"));
}

TEST(ShardedCorpus, RefusesToReadOutside) {
  const TemporaryFolder folder;
  write_sample_corpus(folder / "c", sample_documents(8, 20, 20), 0);
  const ShardedCorpus corpus(folder / "c", Split::kTrain);
  std::uint32_t id = 0;
  EXPECT_THROW(corpus.read(20, 0, 1, &id), std::out_of_range);
  const std::uint64_t length = corpus.document_offsets()[1];
  EXPECT_THROW(corpus.read(0, length, 1, &id), std::out_of_range);
  EXPECT_THROW(corpus.read(0, ~std::uint64_t{0}, 2, &id), std::out_of_range);
  EXPECT_THROW(corpus.verify_shard(99), std::out_of_range);
}

// A corpus whose index.json a test may change.
class IndexOfCorpus : public testing::Test {
 protected:
  IndexOfCorpus() { write_sample_corpus(corpus_, sample_documents(9, 100, 40)); }

  std::string complaint_after(const std::function<void(Json&)>& change) const {
    const std::string before = read_bytes(corpus_ / "index.json");
    Json json = Json::parse(before);
    change(json);
    write_bytes(corpus_ / "index.json", json.dump());
    const std::string message =
        message_of<CorpusError>([this] { ShardedCorpus(corpus_, Split::kTrain); });
    write_bytes(corpus_ / "index.json", before);
    EXPECT_NE(message.find(corpus_.string()), std::string::npos) << message;
    return message;
  }
  void expect_complaint(const std::string& part, const std::function<void(Json&)>& change) const {
    const std::string message = complaint_after(change);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  TemporaryFolder folder_;
  fs::path corpus_ = folder_ / "c";
};

TEST_F(IndexOfCorpus, NamesTheKeyThatIsWrong) {
  expect_complaint("'format'", [](Json& json) { json["format"] = "other"; });
  expect_complaint("'version'", [](Json& json) { json["version"] = 1; });
  expect_complaint("'language'", [](Json& json) { json.erase("language"); });
  expect_complaint("'digest'", [](Json& json) { json["digest"] = "00"; });
  expect_complaint("'vocab_size'", [](Json& json) { json["tokenizer"]["vocab_size"] = -1; });
  expect_complaint("'mask'", [](Json& json) { json["tokenizer"]["special"].erase("mask"); });
  expect_complaint("'reserved_ids'",
                   [](Json& json) { json["tokenizer"]["reserved_ids"] = {0, 1, 2, 3, 4, 4}; });
  expect_complaint("special token 9999",
                   [](Json& json) { json["tokenizer"]["special"]["cls"] = 9999; });
  expect_complaint("totals of split 'train'",
                   [](Json& json) { json["splits"]["train"]["tokens"] = 1; });
}

TEST_F(IndexOfCorpus, RefusesShardsOutsideTheCorpus) {
  for (const char* file : {"../x.h5", "/etc/passwd", "train/../../x.h5", ""}) {
    expect_complaint("not a path inside the corpus",
                     [&](Json& json) { json["splits"]["train"]["shards"][0]["file"] = file; });
  }
}

TEST_F(IndexOfCorpus, RefusesShardsOfAnotherTokenizer) {
  expect_complaint("attribute 'tokenizer_sha256' is ff",
                   [](Json& json) { json["tokenizer"]["fingerprint"] = std::string(64, 'e'); });
}

TEST_F(IndexOfCorpus, NamesAShardOfAnotherSize) {
  expect_complaint("but index.json says 1",
                   [](Json& json) { json["splits"]["train"]["shards"][0]["bytes"] = 1; });
}

TEST_F(IndexOfCorpus, RefusesWhatIsNoIndex) {
  for (const char* text : {"{", "[]", "not json", "\x80"}) {
    write_bytes(corpus_ / "index.json", text);
    EXPECT_EQ(message_of<CorpusError>([this] { ShardedCorpus(corpus_, Split::kTrain); }),
              (corpus_ / "index.json").string() + ": is not a JSON object");
  }
  fs::remove(corpus_ / "index.json");
  EXPECT_EQ(message_of<CorpusError>([this] { ShardedCorpus(corpus_, Split::kTrain); }),
            (corpus_ / "index.json").string() + ": the file is missing");
  EXPECT_THROW(ShardedCorpus::index_json(folder_ / "nowhere"), CorpusError);
}

std::unique_ptr<Tokenizer> some_wordpiece(const std::string& more, bool lowercase) {
  const TemporaryFolder folder;
  write_bytes(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\n" + more);
  return load_wordpiece(folder / "vocab.txt", {.lowercase = lowercase});
}

std::unique_ptr<Tokenizer> some_byte_bpe(bool add_prefix_space) {
  ByteBpeTrainer trainer(
      {.vocab_size = 263, .min_count = 1, .byte_bpe = {.add_prefix_space = add_prefix_space}});
  trainer.add({"abab"});
  return trainer.train();
}

// A corpus of one document, made by `tokenizer`, without it.
void write_corpus_of(const fs::path& corpus, const Tokenizer& tokenizer) {
  CorpusInfo info = sample_info(tokenizer.vocab_size());
  info.special = tokenizer.special_tokens();
  info.reserved_ids = tokenizer.reserved_ids();
  info.tokenizer_fingerprint = tokenizer.fingerprint();
  write_sample_corpus(corpus, {{{5, 6, 7}, {1, 1, 0}, 0, 1, {}}}, 0, 100, info);
}

void replace_tokenizer(const fs::path& corpus, const Tokenizer& tokenizer) {
  fs::remove_all(corpus / kTokenizerFolder);
  store_tokenizer(corpus / kTokenizerFolder, tokenizer);
}

void expect_foreign(const fs::path& corpus) {
  const std::string message =
      message_of<CorpusError>([&] { ShardedCorpus::load_tokenizer(corpus); });
  EXPECT_NE(message.find("is not the tokenizer that made this corpus"), std::string::npos);
}

TEST(StoredTokenizer, IsCheckedAgainstTheIndex) {
  const TemporaryFolder folder;
  const auto tokenizer = some_wordpiece("", true);
  write_corpus_of(folder / "c", *tokenizer);
  replace_tokenizer(folder / "c", *tokenizer);
  EXPECT_EQ(ShardedCorpus::load_tokenizer(folder / "c")->fingerprint(), tokenizer->fingerprint());
  fs::remove(folder / "c/tokenizer/tokenizer.json");  // as corpora were before there was one
  EXPECT_EQ(ShardedCorpus::load_tokenizer(folder / "c")->fingerprint(), tokenizer->fingerprint());

  replace_tokenizer(folder / "c", *some_wordpiece("", false));
  expect_foreign(folder / "c");
  replace_tokenizer(folder / "c", *some_wordpiece("c\n", true));
  expect_foreign(folder / "c");
  replace_tokenizer(folder / "c", *some_byte_bpe(false));
  expect_foreign(folder / "c");
  write_bytes(folder / "c/tokenizer/tokenizer_config.json", R"({"kind": "characters"})");
  EXPECT_THROW(ShardedCorpus::load_tokenizer(folder / "c"), CorpusError);
  fs::remove_all(folder / "c/tokenizer");
  EXPECT_THROW(ShardedCorpus::load_tokenizer(folder / "c"), CorpusError);
}

TEST(StoredTokenizer, MayBeByteLevelBpe) {
  const TemporaryFolder folder;
  const auto tokenizer = some_byte_bpe(true);
  write_corpus_of(folder / "c", *tokenizer);
  replace_tokenizer(folder / "c", *tokenizer);
  const auto loaded = ShardedCorpus::load_tokenizer(folder / "c");
  EXPECT_EQ(loaded->fingerprint(), tokenizer->fingerprint());
  EXPECT_EQ(loaded->kind(), "byte-bpe");
  replace_tokenizer(folder / "c", *some_byte_bpe(false));
  expect_foreign(folder / "c");
}

}  // namespace
}  // namespace tupelo::corpus_test
