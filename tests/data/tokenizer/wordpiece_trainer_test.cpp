#include "data/tokenizer/wordpiece_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "tests/data/tokenizer/test_vocabulary.h"

namespace tupelo::wordpiece_trainer_test {
namespace {

using Tokens = std::vector<std::string>;

WordPieceTrainerOptions options(std::uint32_t vocab_size, std::uint64_t min_count,
                                int threads = 1) {
  return {.vocab_size = vocab_size, .min_count = min_count, .wordpiece = {}, .threads = threads};
}

Tokens train(const WordPieceTrainerOptions& given, const Tokens& texts) {
  WordPieceTrainer trainer(given);
  trainer.add(texts);
  return trainer.train();
}

Tokens with_specials(const Tokens& tokens) {
  Tokens all{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  all.insert(all.end(), tokens.begin(), tokens.end());
  return all;
}

TEST(WordPieceTrainer, MergesTheHandComputedExample) {
  // ab x3, abc x1, bc x2: a+b 4, b+c (first) 2, b+c (inside) 1; after ab: ab+c 1.
  EXPECT_EQ(train(options(12, 1), {"ab AB", "abc bc", "ab, bc", ","}),
            with_specials({",", "a", "b", "##b", "##c", "ab", "bc"}));
  EXPECT_EQ(train(options(13, 1), {"ab AB", "abc bc", "ab, bc", ","}),
            with_specials({",", "a", "b", "##b", "##c", "ab", "bc", "abc"}));
}

TEST(WordPieceTrainer, BreaksTiesByBytes) {
  // All counts equal: "##bc" < "ab", then a + ##bc.
  EXPECT_EQ(train(options(10, 1), {"abc"}), with_specials({"a", "##b", "##c", "##bc", "abc"}));
  EXPECT_EQ(train(options(10, 1), {"zy xy xy zy"}), with_specials({"x", "z", "##y", "xy", "zy"}));
}

TEST(WordPieceTrainer, CountsOverlappingPairs) {
  // aaaa: a+a 1, inside 2 -> "##aa" from the left: a ##aa ##a.
  EXPECT_EQ(train(options(10, 1), {"aaaa"}), with_specials({"a", "##a", "##aa", "##aaa", "aaaa"}));
}

TEST(WordPieceTrainer, KeepsChineseCharactersApart) {
  EXPECT_EQ(train(options(8, 1), {"中国 中国", "国"}), with_specials({"中", "国", "[unused0]"}));
}

TEST(WordPieceTrainer, PadsWithUnusedTokens) {
  EXPECT_EQ(train(options(9, 1), {"a"}),
            with_specials({"a", "[unused0]", "[unused1]", "[unused2]"}));
  EXPECT_EQ(train(options(6, 1), {}), with_specials({"[unused0]"}));
}

TEST(WordPieceTrainer, LeavesOutRareCharactersAndTheirWords) {
  // z occurs once: no z, and the pair a+b of "abz" does not count.
  EXPECT_EQ(train(options(10, 2), {"abz ab ca ca"}), with_specials({"a", "c", "##a", "##b", "ca"}));
}

TEST(WordPieceTrainer, NamesTheLeastSizeThatWorks) {
  WordPieceTrainer trainer(options(7, 1));
  trainer.add({"abc abc ab"});
  try {
    trainer.train();
    FAIL() << "trained in spite of it";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(
        error.what(),
        "a vocabulary of 7 tokens cannot hold the special tokens and the characters that occur "
        "at least 1 times: the least size is 8, or else a minimum count of 3");
  }
}

TEST(WordPieceTrainer, RefusesZeroThreads) {
  EXPECT_THROW(WordPieceTrainer{options(100, 1, 0)}, std::invalid_argument);
}

TEST(WordPieceTrainer, ReportsProgressUpToTheEnd) {
  WordPieceTrainer trainer(options(40, 1));
  trainer.add({"the quick brown fox jumps"});
  std::vector<std::uint64_t> seen;
  trainer.train([&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, 40u);
    seen.push_back(done);
  });
  ASSERT_FALSE(seen.empty());
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), 40u);
}

Tokens repeated_lines() {
  Tokens lines = testing::read_lines(testing::vector_file("lines.txt"));
  const std::size_t count = lines.size();
  for (std::size_t i = 0; i < 4 * count; ++i) lines.push_back(lines[i]);  // enough for four threads
  return lines;
}

TEST(WordPieceTrainer, IsTheSameForAnyThreadsOrderAndGrouping) {
  Tokens lines = repeated_lines();
  const Tokens expected = train(options(9000, 2, 1), lines);
  std::mt19937 random(3);
  for (const int threads : {1, 2, 4, 7}) {
    std::shuffle(lines.begin(), lines.end(), random);
    WordPieceTrainer trainer(options(9000, 2, threads));
    const auto middle =
        lines.begin() + static_cast<std::ptrdiff_t>(lines.size() / (2 + random() % 5));
    trainer.add({lines.begin(), middle});
    trainer.add({});
    trainer.add({middle, lines.end()});
    EXPECT_EQ(trainer.train(), expected) << threads << " threads";
    EXPECT_EQ(trainer.train(), expected) << "training again";
  }
}

TEST(WordPieceTrainer, LearnsAVocabularyThatLoads) {
  const Tokens lines = repeated_lines();
  std::string file_text;
  for (const std::string& token : train(options(9000, 2), lines)) file_text += token + "\n";
  const testing::TemporaryFile file(file_text);
  const auto tokenizer = load_wordpiece(file.path(), {});
  EXPECT_EQ(tokenizer->vocab_size(), 9000u);
  std::vector<std::uint32_t> ids;
  for (const std::string& line : lines) tokenizer->encode(line, ids);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer->special_tokens().unk), 0);
}

// The rule itself, in the slowest way: count every pair of every word anew before each merge.
class ReferenceTrainer {
 public:
  explicit ReferenceTrainer(const std::map<std::string, std::uint64_t>& words) {
    std::set<std::string> first, inside;
    for (const auto& [word, count] : words) {
      Tokens symbols;
      for (const char c : word) {
        symbols.push_back(symbols.empty() ? std::string{c} : std::string("##") + c);
        (symbols.size() == 1 ? first : inside).insert(symbols.back());
      }
      words_.emplace_back(symbols, count);
    }
    tokens_ = with_specials({first.begin(), first.end()});
    tokens_.insert(tokens_.end(), inside.begin(), inside.end());
  }

  Tokens train(std::size_t size, std::uint64_t min_count) {
    while (tokens_.size() < size && merge(min_count)) {
    }
    for (std::size_t i = 0; tokens_.size() < size; ++i) {
      tokens_.push_back("[unused" + std::to_string(i) + "]");
    }
    return tokens_;
  }

 private:
  static std::string join(const std::string& left, const std::string& right) {
    return left + (right.starts_with("##") ? right.substr(2) : right);
  }

  bool merge(std::uint64_t min_count) {
    std::map<std::pair<std::string, std::string>, std::uint64_t> counts;
    for (const auto& [symbols, count] : words_) {
      for (std::size_t i = 1; i < symbols.size(); ++i)
        counts[{symbols[i - 1], symbols[i]}] += count;
    }
    const auto best =
        std::min_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
          if (a.second != b.second) return a.second > b.second;
          const std::string joined_a = join(a.first.first, a.first.second);
          const std::string joined_b = join(b.first.first, b.first.second);
          return joined_a != joined_b ? joined_a < joined_b : a.first.first < b.first.first;
        });
    if (best == counts.end() || best->second < min_count) return false;
    const auto [left, right] = best->first;
    const std::string joined = join(left, right);
    for (auto& [symbols, count] : words_) {
      for (std::size_t i = 1; i < symbols.size(); ++i) {
        if (symbols[i - 1] != left || symbols[i] != right) continue;
        symbols[i - 1] = joined;
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (std::find(tokens_.begin(), tokens_.end(), joined) == tokens_.end())
      tokens_.push_back(joined);
    return true;
  }

  std::vector<std::pair<Tokens, std::uint64_t>> words_;
  Tokens tokens_;
};

TEST(WordPieceTrainer, EqualsTheReferenceOnRandomWords) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const unsigned letters = 2 + random() % 4;
    std::map<std::string, std::uint64_t> words;
    Tokens texts;
    for (int i = 0; i < 60; ++i) {
      std::string word;
      for (unsigned k = 1 + random() % 9; k > 0; --k)
        word += static_cast<char>('a' + random() % letters);
      const unsigned count = 1 + random() % 4;
      words[word] += count;
      for (unsigned k = 0; k < count; ++k) texts.push_back(word);
    }
    const std::uint64_t min_count = 1 + random() % 3;
    // Every letter occurs often, so min_count bites on pairs alone.
    for (char c = 'a'; c < static_cast<char>('a' + letters); ++c) {
      for (int k = 0; k < 3; ++k) texts.push_back(std::string{c});
      words[std::string{c}] += 3;
    }
    ASSERT_EQ(train(options(120, min_count), texts), ReferenceTrainer(words).train(120, min_count))
        << "round " << round;
  }
}

}  // namespace
}  // namespace tupelo::wordpiece_trainer_test
