// Word starts of a prepared corpus: by a dictionary, by spaces, by the tokenizer alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/content_digest.h"
#include "data/corpus.h"
#include "data/hdf5_reader.h"
#include "data/prepare.h"
#include "data/segmenter/sentence_ends.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::prepare_words_test {
namespace {

constexpr const char* kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n研\n究\n生\n命\n的\n起\n源\n。\nriver\nstone\n##s\n";
constexpr const char* kDictionary =
    "研究 100 v\n研究生 20 n\n生命 80 n\n命 10 n\n起源 30 n\n的 500 uj\n";
constexpr const char* kText = "研究生命的起源。\nrivers 研究生\n\nstone 的命\n";
constexpr const char* kSegmented = "研究 生命 的 起源 。 \nrivers 研究生\n\nstone 的 命\n";

class PrepareWords : public testing::Test {
 protected:
  PrepareWords() {
    write_bytes(folder_ / "vocab.txt", kVocabulary);
    write_bytes(folder_ / "dict.txt", kDictionary);
    write_bytes(folder_ / "in.txt", kText);
  }

  PrepareOptions options(const std::string& output) const {
    PrepareOptions options;
    options.inputs = {folder_ / "in.txt"};
    options.output = folder_ / output;
    options.vocab_file = folder_ / "vocab.txt";
    options.held_out = 0;
    return options;
  }
  PrepareOptions with_dictionary(const std::string& output) const {
    PrepareOptions chosen = options(output);
    chosen.segmenter_dictionary = folder_ / "dict.txt";
    return chosen;
  }

  // "研 究 / 生 命": the tokens of all documents, a stroke before each word.
  static std::string words_of(const PrepareOptions& chosen) {
    const ShardedCorpus corpus(chosen.output, Split::kTrain);
    const auto tokenizer = ShardedCorpus::load_tokenizer(chosen.output);
    std::string text;
    for (std::uint64_t d = 0; d < corpus.documents(); ++d) {
      const auto& offsets = corpus.document_offsets();
      std::vector<std::uint32_t> ids(offsets[d + 1] - offsets[d]);
      corpus.read(d, 0, ids.size(), ids.data());
      for (std::size_t i = 0; i < ids.size(); ++i) {
        text += corpus.begins_word(d, i) ? "/" : " ";
        text += tokenizer->token(ids[i]);
      }
      text += "|";
    }
    return text;
  }
  static nlohmann::json index_of(const PrepareOptions& chosen) {
    return nlohmann::json::parse(ShardedCorpus::index_json(chosen.output));
  }

  TemporaryFolder folder_;
};

TEST_F(PrepareWords, WithoutADictionaryTheyAreTheTokenizers) {
  const PrepareOptions chosen = options("corpus");
  prepare_corpus(chosen);
  EXPECT_EQ(words_of(chosen), "/研/究/生/命/的/起/源/。/river ##s/研/究/生|/stone/的/命|");
  EXPECT_FALSE(index_of(chosen).contains("segmenter"));
  const std::string shard = read_bytes(chosen.output / "train/shard-00000-of-00001.h5");
  EXPECT_EQ(shard.find("segmenter"), std::string::npos);
}

TEST_F(PrepareWords, ADictionaryFindsThem) {
  const PrepareOptions chosen = with_dictionary("corpus");
  prepare_corpus(chosen);
  EXPECT_EQ(words_of(chosen), "/研 究/生 命/的/起 源/。/river ##s/研 究 生|/stone/的/命|");
  const nlohmann::json segmenter = index_of(chosen)["segmenter"];
  EXPECT_EQ(segmenter["kind"], "dictionary");
  ASSERT_EQ(segmenter["files"].size(), 1u);
  EXPECT_EQ(segmenter["files"][0]["file"], (folder_ / "dict.txt").string());
  const std::string bytes = kDictionary;
  EXPECT_EQ(segmenter["files"][0]["sha256"], sha256_hex_of(bytes.data(), bytes.size()));
  const CorpusInfo info = ShardedCorpus(chosen.output, Split::kTrain).info();
  EXPECT_EQ(info.segmenter.kind, "dictionary");
  EXPECT_EQ(info.segmenter.fingerprint, segmenter["fingerprint"]);
}

TEST_F(PrepareWords, AUserDictionaryHasTheLastWord) {
  write_bytes(folder_ / "user.txt", "生命的\n");
  PrepareOptions chosen = with_dictionary("corpus");
  chosen.user_dictionaries = {folder_ / "user.txt"};
  prepare_corpus(chosen);
  EXPECT_EQ(words_of(chosen), "/研 究/生 命 的/起 源/。/river ##s/研 究 生|/stone/的/命|");
  EXPECT_EQ(index_of(chosen)["segmenter"]["files"].size(), 2u);
}

TEST_F(PrepareWords, SpacesOfPresegmentedInputSetThemApartAndAreNotText) {
  const PrepareOptions by_dictionary = with_dictionary("one");
  prepare_corpus(by_dictionary);
  write_bytes(folder_ / "in.txt", kSegmented);
  PrepareOptions by_spaces = options("two");
  by_spaces.pre_segmented = true;
  prepare_corpus(by_spaces);
  EXPECT_EQ(words_of(by_spaces), words_of(by_dictionary));
  EXPECT_EQ(index_of(by_spaces)["segmenter"], (nlohmann::json{{"kind", "spaces"}}));
  // Not the same text: here it is "stone的命".
  EXPECT_NE(index_of(by_spaces)["digest"], index_of(by_dictionary)["digest"]);
}

TEST_F(PrepareWords, AreTheSameForAnyNumberOfThreads) {
  std::string text;
  for (int i = 0; i < 40000; ++i) {
    text += i % 3 == 0 ? "研究生命的起源。" : "rivers 研究生的命";
    text += i % 7 == 0 ? "\n\n" : "\n";
  }
  write_bytes(folder_ / "in.txt", text);
  PrepareOptions one = with_dictionary("one"), three = with_dictionary("three");
  three.threads = 3;
  prepare_corpus(one);
  prepare_corpus(three);
  EXPECT_EQ(tree_of(one.output), tree_of(three.output));
}

TEST_F(PrepareWords, ADifferentSegmenterInAShardIsRefused) {
  const PrepareOptions chosen = with_dictionary("corpus");
  prepare_corpus(chosen);
  nlohmann::ordered_json index =
      nlohmann::ordered_json::parse(ShardedCorpus::index_json(chosen.output));
  index["segmenter"]["fingerprint"] = std::string(64, '0');
  write_bytes(chosen.output / "index.json", index.dump());
  std::string message =
      message_of<CorpusError>([&] { ShardedCorpus(chosen.output, Split::kTrain); });
  EXPECT_NE(message.find("segmenter_sha256"), std::string::npos) << message;
  index.erase("segmenter");
  write_bytes(chosen.output / "index.json", index.dump());
  message = message_of<CorpusError>([&] { ShardedCorpus(chosen.output, Split::kTrain); });
  EXPECT_NE(message.find("'segmenter_kind' is dictionary, expected none"), std::string::npos)
      << message;
  index["segmenter"] = {{"kind", "guess"}};
  write_bytes(chosen.output / "index.json", index.dump());
  message = message_of<CorpusError>([&] { ShardedCorpus(chosen.output, Split::kTrain); });
  EXPECT_NE(message.find("'guess'"), std::string::npos) << message;
}

TEST_F(PrepareWords, SentencesAreStoredWhenAskedFor) {
  PrepareOptions chosen = with_dictionary("corpus");
  chosen.sentence_starts = true;
  prepare_corpus(chosen);
  const ShardedCorpus corpus(chosen.output, Split::kTrain);
  ASSERT_EQ(corpus.documents(), 2u);
  std::vector<std::uint8_t> starts(13), rest(3);
  corpus.read_sentence_starts(0, 0, 13, starts.data());
  EXPECT_EQ(starts, (std::vector<std::uint8_t>{1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}));
  corpus.read_sentence_starts(1, 0, 3, rest.data());
  EXPECT_EQ(rest, (std::vector<std::uint8_t>{1, 0, 0}));
  corpus.verify_shard(0);
  EXPECT_EQ(words_of(chosen), "/研 究/生 命/的/起 源/。/river ##s/研 究 生|/stone/的/命|");
  EXPECT_EQ(index_of(chosen)["sentences"]["rules"], kSentenceRules);
  EXPECT_EQ(index_of(chosen)["splits"]["train"]["shards"][0]["payload"].size(), 7u);
}

TEST_F(PrepareWords, ADamagedSentenceStartIsFound) {
  PrepareOptions chosen = options("corpus");
  chosen.sentence_starts = true;
  prepare_corpus(chosen);
  const auto shard = chosen.output / "train/shard-00000-of-00001.h5";
  const RegularFile file(shard);
  const auto place = Hdf5Reader(file).dataset("sent_start", {ElementType::kUint8});
  EXPECT_EQ(place.count, 2u);
  flip_bit(shard, place.offset, 3);
  const std::string message =
      message_of<CorpusError>([&] { ShardedCorpus(chosen.output, Split::kTrain).verify_shard(0); });
  EXPECT_NE(message.find("'sent_start' is damaged"), std::string::npos) << message;
}

TEST_F(PrepareWords, SentencesAreMissedWhereThereAreNone) {
  const PrepareOptions chosen = options("corpus");
  prepare_corpus(chosen);
  const ShardedCorpus corpus(chosen.output, Split::kTrain);
  std::uint8_t flag = 0;
  EXPECT_THROW(corpus.read_sentence_starts(0, 0, 1, &flag), CorpusError);
  nlohmann::ordered_json index =
      nlohmann::ordered_json::parse(ShardedCorpus::index_json(chosen.output));
  index["sentences"] = {{"rules", 1}};
  write_bytes(chosen.output / "index.json", index.dump());
  const std::string message =
      message_of<CorpusError>([&] { ShardedCorpus(chosen.output, Split::kTrain); });
  EXPECT_NE(message.find("'sentence_rules' is missing, expected 1"), std::string::npos) << message;
}

TEST_F(PrepareWords, RefusesOptionsThatDoNotGoTogether) {
  PrepareOptions both = with_dictionary("corpus");
  both.pre_segmented = true;
  EXPECT_THROW(prepare_corpus(both), std::invalid_argument);
  PrepareOptions alone = options("corpus");
  alone.user_dictionaries = {folder_ / "dict.txt"};
  EXPECT_THROW(prepare_corpus(alone), std::invalid_argument);
  PrepareOptions damaged = with_dictionary("corpus");
  write_bytes(folder_ / "dict.txt", "研究 many v\n");
  const std::string message = message_of<CorpusError>([&] { prepare_corpus(damaged); });
  EXPECT_NE(message.find("dict.txt: line 1"), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(damaged.output));
}

}  // namespace
}  // namespace tupelo::prepare_words_test
