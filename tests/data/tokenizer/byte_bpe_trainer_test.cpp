#include "data/tokenizer/byte_bpe_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "tests/data/tokenizer/test_vocabulary.h"

namespace tupelo::byte_bpe_trainer_test {
namespace {

using testing::read_lines;
using testing::vector_file;
using Texts = std::vector<std::string>;

constexpr std::uint32_t kFirstMerge = 5 + 256;

std::unique_ptr<Tokenizer> train(const ByteBpeTrainerOptions& options, const Texts& texts) {
  ByteBpeTrainer trainer(options);
  trainer.add(texts);
  return trainer.train();
}

// The tokens behind the bytes.
Texts learnt(const Tokenizer& tokenizer) {
  Texts tokens;
  for (std::uint32_t id = kFirstMerge; id < tokenizer.vocab_size(); ++id) {
    tokens.push_back(tokenizer.token(id));
  }
  return tokens;
}

ByteBpeTrainerOptions options(std::uint32_t merges, std::uint64_t min_count = 1, int threads = 1) {
  return {.vocab_size = kFirstMerge + merges,
          .min_count = min_count,
          .byte_bpe = {},
          .threads = threads};
}

TEST(ByteBpeTrainer, MergesTheHandComputedExample) {
  // "ab" x1, " ab" x2, " abc" x1, " bc" x1: a+b 4; then Ġ+ab 3; then b+c 1 beside Ġ+b 1 and Ġab+c.
  // Among these b+c: its left half is the oldest byte after Ġ, which comes behind all printable
  // ones.
  EXPECT_EQ(learnt(*train(options(3), {"ab ab ab abc", "\tbc"})), (Texts{"ab", "Ġab", "bc"}));
}

TEST(ByteBpeTrainer, BreaksTiesByAgeOfTheHalves) {
  // x+y and z+y once each: x comes before z. Letters come before Ċ (line feed), whatever their
  // byte.
  EXPECT_EQ(learnt(*train(options(2), {"zy", "xy"})), (Texts{"xy", "zy"}));
  EXPECT_EQ(learnt(*train(options(2), {"\n\n", "zz"})), (Texts{"zz", "ĊĊ"}));
}

TEST(ByteBpeTrainer, StopsAtRarePairsAndPads) {
  auto rare = options(6, 2);
  EXPECT_EQ(learnt(*train(rare, {"ab", "ab", "cd"})),
            (Texts{"ab", "[unused0]", "[unused1]", "[unused2]", "[unused3]", "[unused4]"}));
  rare.size_multiple = 64;
  const auto tokenizer = train(rare, {"ab", "ab"});
  EXPECT_EQ(tokenizer->vocab_size(), 320u);
  EXPECT_EQ(tokenizer->token(319), "[unused57]");
  EXPECT_EQ(tokenizer->reserved_ids().size(), 5u + 58u);
  EXPECT_EQ(tokenizer->reserved_ids().back(), 319u);
}

TEST(ByteBpeTrainer, CountsWordsAsTheTokenizerSeesThem) {
  auto prefixed = options(2);
  prefixed.byte_bpe.add_prefix_space = true;
  EXPECT_EQ(learnt(*train(prefixed, {"a", "a"})), (Texts{"Ġa", "[unused0]"}));
  // Never across words.
  EXPECT_EQ(learnt(*train(options(1), {"a1a1a1a1"})), (Texts{"[unused0]"}));
  // U+FFFD is EF BF BD, of which BD has the first symbol: BF+BD before EF+BF.
  EXPECT_EQ(learnt(*train(options(1), {"\xFF", "\xFF"})), (Texts{"¿½"}));
}

TEST(ByteBpeTrainer, LearnsWhatHuggingFaceLearns) {
  const Texts lines = read_lines(vector_file("lines.txt"));
  const auto expected =
      load_byte_bpe(vector_file("byte_bpe/vocab.json"), vector_file("byte_bpe/merges.txt"), {});
  for (const int threads : {1, 3}) {
    ByteBpeTrainer trainer({.vocab_size = 1500, .byte_bpe = {}, .threads = threads});
    const auto middle = lines.begin() + static_cast<std::ptrdiff_t>(lines.size() / 3);
    trainer.add({middle, lines.end()});
    trainer.add({lines.begin(), middle});
    EXPECT_EQ(trainer.train()->fingerprint(), expected->fingerprint());
  }
}

TEST(ByteBpeTrainer, IgnoresWordsThatNoFileCouldHold) {
  const std::string monster(1 << 16, '-');
  EXPECT_EQ(learnt(*train(options(1, 2), {monster, monster})), (Texts{"[unused0]"}));
}

TEST(ByteBpeTrainer, ReportsProgressUpToTheEnd) {
  ByteBpeTrainer trainer(options(3, 2));
  trainer.add({"ab", "ab"});
  std::vector<std::uint64_t> done;
  trainer.train([&](std::uint64_t now, std::uint64_t total) {
    EXPECT_EQ(total, kFirstMerge + 3);
    done.push_back(now);
  });
  EXPECT_EQ(done, (std::vector<std::uint64_t>{kFirstMerge + 1, kFirstMerge + 3}));
}

TEST(ByteBpeTrainer, RefusesWhatCannotBe) {
  EXPECT_THROW(ByteBpeTrainer({.vocab_size = 260, .byte_bpe = {}}), std::invalid_argument);
  EXPECT_THROW(ByteBpeTrainer({.size_multiple = 0, .byte_bpe = {}}), std::invalid_argument);
  EXPECT_THROW(ByteBpeTrainer({.byte_bpe = {}, .threads = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace tupelo::byte_bpe_trainer_test
