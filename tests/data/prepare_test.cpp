#include "data/prepare.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "data/content_digest.h"
#include "data/corpus.h"
#include "data/document_text.h"
#include "data/shard.h"
#include "tests/data/prepare_fixture.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::prepare_test {
namespace {

namespace fs = std::filesystem;

class Prepare : public PrepareTest {};

TEST_F(Prepare, CorpusHoldsTheTokensOfTheTexts) {
  write_bytes(folder_ / "in/a.txt", "春天 的 风\nmorning light\n\nstone 42。\n");
  write_bytes(folder_ / "in/b.txt", "\xEF\xBB\xBFRiver\r\nstone\r\n\r\n明月\r\n");
  PrepareOptions chosen = options();
  chosen.held_out = 0;
  const PrepareReport report = prepare_corpus(chosen);
  const ShardedCorpus corpus(chosen.output, Split::kTrain);
  const auto tokenizer = ShardedCorpus::load_tokenizer(chosen.output);
  const std::vector<std::string> texts = {
      "春天 的 风 morning light", "stone 42。", "River stone", "明月",
      "春天 的 风 morning",       "stone"};
  ASSERT_EQ(corpus.documents(), texts.size());
  for (std::size_t d = 0; d < texts.size(); ++d) {
    std::vector<std::uint32_t> expected;
    std::vector<std::uint8_t> starts;
    tokenizer->encode(texts[d], expected, &starts);
    std::vector<std::uint32_t> ids(expected.size());
    ASSERT_EQ(corpus.document_offsets()[d + 1] - corpus.document_offsets()[d], expected.size());
    corpus.read(d, 0, expected.size(), ids.data());
    EXPECT_EQ(ids, expected) << texts[d];
    for (std::size_t i = 0; i < starts.size(); ++i) {
      EXPECT_EQ(corpus.begins_word(d, i), starts[i] == 1);
    }
  }
  EXPECT_EQ(report.documents, texts.size());
  EXPECT_EQ(report.train_tokens, corpus.tokens());
  EXPECT_EQ(report.vocab_size, 120u);
  EXPECT_EQ(corpus.info().language, "zh");
  expect_only({"corpus"});
}

TEST_F(Prepare, ReportAndIndexAddUp) {
  const PrepareOptions chosen = options();
  const PrepareReport report = prepare_corpus(chosen);
  const ShardedCorpus train(chosen.output, Split::kTrain);
  const ShardedCorpus held_out(chosen.output, Split::kHeldOut);
  EXPECT_EQ(report.documents, 702u);
  EXPECT_EQ(report.train_documents, train.documents());
  EXPECT_EQ(report.held_out_documents, held_out.documents());
  EXPECT_EQ(report.train_documents + report.held_out_documents, report.documents);
  EXPECT_NEAR(static_cast<double>(report.held_out_documents), 140, 50);
  EXPECT_EQ(report.train_tokens, train.tokens());
  EXPECT_EQ(report.held_out_tokens, held_out.tokens());
  EXPECT_EQ(report.train_shards, static_cast<int>(train.shards().size()));
  EXPECT_GT(report.train_shards, 1);
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "in")) bytes += entry.file_size();
  EXPECT_EQ(report.input_bytes, bytes);
  EXPECT_GE(report.seconds, report.tokenize_seconds);
  for (const ShardedCorpus* split : {&train, &held_out}) {
    for (std::size_t s = 0; s < split->shards().size(); ++s) split->verify_shard(s);
  }
  const auto index = nlohmann::json::parse(ShardedCorpus::index_json(chosen.output));
  EXPECT_EQ(index["splits"]["held-out"]["documents"], report.held_out_documents);
  EXPECT_EQ(index["source"]["files"].size(), 3u);
}

TEST_F(Prepare, SameBytesForAnyNumberOfThreads) {
  const auto bytes_with = [this](int threads) {
    PrepareOptions chosen = options("corpus-" + std::to_string(threads));
    chosen.threads = threads;
    prepare_corpus(chosen);
    return tree_of(chosen.output);
  };
  const auto expected = bytes_with(1);
  EXPECT_GT(expected.size(), 5u);
  EXPECT_EQ(bytes_with(2), expected);
  EXPECT_EQ(bytes_with(4), expected);
}

TEST_F(Prepare, EqualTextsShareASplit) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "morning " + std::to_string(i) + "\n\n";
  write_bytes(folder_ / "in/a.txt", text + text);
  write_bytes(folder_ / "in/b.txt", text);
  fs::remove(folder_ / "in/c.jsonl");
  const PrepareOptions chosen = options();
  prepare_corpus(chosen);
  const CorpusIndex index = read_corpus_index(chosen.output);
  std::map<std::uint64_t, std::map<std::string, int>> seen;
  for (const Split split : {Split::kTrain, Split::kHeldOut}) {
    for (const ShardSummary& summary : index.shards(split)) {
      const Shard shard(chosen.output / summary.file, shard_identity(index.info, split));
      for (std::uint64_t d = 0; d < shard.documents(); ++d) {
        ++seen[shard.hash(d)][split_name(split)];
      }
    }
  }
  EXPECT_EQ(seen.size(), 100u);
  ContentDigest digest;
  EXPECT_EQ(seen.count(document_hash("morning 42", digest)), 1u);
  for (const auto& [hash, splits] : seen) {
    ASSERT_EQ(splits.size(), 1u);
    EXPECT_EQ(splits.begin()->second, 3);
  }
}

TEST_F(Prepare, TakesAGivenVocabulary) {
  const std::string vocabulary = "[PAD]\n[unused1]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nstone\n风\n";
  write_bytes(folder_ / "in/a.txt", "stone 风 unknown");
  fs::remove(folder_ / "in/b.txt");
  fs::remove(folder_ / "in/c.jsonl");
  write_bytes(folder_ / "vocab.txt", vocabulary);
  PrepareOptions chosen = options();
  chosen.train_vocab_size.reset();
  chosen.vocab_file = folder_ / "vocab.txt";
  chosen.held_out = 0;
  const PrepareReport report = prepare_corpus(chosen);
  EXPECT_EQ(report.unknown_tokens, 1u);
  EXPECT_EQ(read_bytes(chosen.output / "tokenizer/vocab.txt"), vocabulary);
  const ShardedCorpus corpus(chosen.output, Split::kTrain);
  std::vector<std::uint32_t> ids(3);
  corpus.read(0, 0, 3, ids.data());
  EXPECT_EQ(ids, (std::vector<std::uint32_t>{6, 7, 2}));
  EXPECT_EQ(corpus.info().special.mask, 5u);
  EXPECT_EQ(corpus.info().reserved_ids, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5}));
}

TEST_F(Prepare, LearnsByteLevelBpe) {
  PrepareOptions chosen = options();
  chosen.train_kind = TokenizerKind::kByteBpe;
  chosen.train_vocab_size = 300;
  chosen.vocab_multiple = 64;
  chosen.held_out = 0;
  const PrepareReport report = prepare_corpus(chosen);
  EXPECT_EQ(report.vocab_size, 320u);
  EXPECT_EQ(report.unknown_tokens, 0u);
  const ShardedCorpus corpus(chosen.output, Split::kTrain);
  const CorpusInfo& info = corpus.info();
  EXPECT_EQ(info.tokenizer_kind, "byte-bpe");
  EXPECT_EQ(info.special.cls, 0u);
  EXPECT_EQ(info.special.pad, 1u);
  EXPECT_EQ(info.special.sep, 2u);
  EXPECT_EQ(info.special.mask, 4u);
  EXPECT_EQ(info.reserved_ids.size(), 5u + 20u);
  const std::uint64_t size = corpus.document_offsets()[1];
  std::vector<std::uint32_t> ids(size);
  corpus.read(0, 0, size, ids.data());
  const std::string decoded = ShardedCorpus::load_tokenizer(chosen.output)->decode(ids);
  const std::string text = made_up_text(1, 400);
  EXPECT_EQ(decoded, text.substr(0, text.find("\n\n")));

  PrepareOptions again = options("again");
  again.train_vocab_size.reset();
  again.vocab_file = chosen.output;  // the tokenizer of another corpus
  again.held_out = 0;
  prepare_corpus(again);
  EXPECT_EQ(ShardedCorpus(again.output, Split::kTrain).info().digest, info.digest);
}

TEST_F(Prepare, TakesASentencePieceModel) {
  write_bytes(folder_ / "in/a.txt", "the river\nlight stone 春天的风 \xF0\x9F\x98\x80");
  fs::remove(folder_ / "in/b.txt");
  fs::remove(folder_ / "in/c.jsonl");
  PrepareOptions chosen = options();
  chosen.train_vocab_size.reset();
  chosen.vocab_file =
      fs::path(TUPELO_TEST_DATA) / "tokenizer" / "vectors" / "tiny_sentencepiece.model";
  chosen.held_out = 0;
  EXPECT_EQ(prepare_corpus(chosen).unknown_tokens, 1u);
  const ShardedCorpus corpus(chosen.output, Split::kTrain);
  EXPECT_EQ(corpus.info().tokenizer_kind, "sentencepiece");
  EXPECT_EQ(corpus.info().special.mask, corpus.info().vocab_size - 1);
  const auto tokenizer = ShardedCorpus::load_tokenizer(chosen.output);
  std::vector<std::string> pieces;
  std::vector<std::uint32_t> ids(corpus.tokens());
  corpus.read(0, 0, ids.size(), ids.data());
  for (const std::uint32_t id : ids) pieces.push_back(tokenizer->token(id));
  EXPECT_EQ(pieces, (std::vector<std::string>{"▁the", "▁river", "▁li", "ght", "▁st", "one", "▁",
                                              "春", "天", "的", "风", "▁", "<unk>"}));
  EXPECT_TRUE(corpus.begins_word(0, 6));
  EXPECT_FALSE(corpus.begins_word(0, 7));
}

TEST_F(Prepare, LearnsTheSameByteLevelBpeWithAnyThreads) {
  std::vector<std::vector<std::pair<std::string, std::string>>> trees;
  for (const int threads : {1, 3}) {
    PrepareOptions chosen = options("threads" + std::to_string(threads));
    chosen.train_kind = TokenizerKind::kByteBpe;
    chosen.train_vocab_size = 320;
    chosen.threads = threads;
    prepare_corpus(chosen);
    trees.push_back(tree_of(chosen.output));
  }
  EXPECT_EQ(trees[0], trees[1]);
}

TEST_F(Prepare, CountsInvalidBytesAndEmptyDocuments) {
  write_bytes(folder_ / "in/a.txt", "stone\xFF\xFE light\n\nmorning\n");
  write_bytes(folder_ / "in/c.jsonl", "{\"text\": \"  \"}\n{\"text\": \"st\xC0one\"}\n");
  const PrepareReport report = prepare_corpus(options());
  EXPECT_EQ(report.invalid_bytes, 3u);
  EXPECT_EQ(report.empty_documents, 1u);
}

TEST_F(Prepare, TellsItsProgressFromTheCallingThread) {
  std::vector<PrepareProgress> told;
  const auto caller = std::this_thread::get_id();
  prepare_corpus(options(), [&](const PrepareProgress& progress) {
    EXPECT_TRUE(std::this_thread::get_id() == caller);
    told.push_back(progress);
  });
  std::vector<std::string> phases;
  std::uint64_t documents = 0;
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_LE(told[i].done_bytes, told[i].total_bytes);
    if (phases.empty() || phases.back() != told[i].phase) {
      phases.push_back(told[i].phase);
    } else {
      EXPECT_GE(told[i].done_bytes, told[i - 1].done_bytes);
    }
  }
  EXPECT_EQ(phases, (std::vector<std::string>{"vocabulary", "tokenize", "shards", "verify"}));
  for (const PrepareProgress& progress : told) {
    if (progress.phase == "tokenize") documents = progress.documents;
  }
  EXPECT_EQ(documents, 702u);
}

}  // namespace
}  // namespace tupelo::prepare_test
