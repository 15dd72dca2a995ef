#include "data/masker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "tests/data/sample_corpus.h"

namespace tupelo::masker_test {
namespace {

struct Masked {
  std::vector<std::uint32_t> tokens;
  std::vector<MaskedToken> masked;
};

std::vector<std::uint32_t> ordinary_tokens(std::size_t count) {
  return std::vector<std::uint32_t>(count, 77);
}

Masked mask(const Masker& masker, std::uint64_t epoch, std::uint64_t document, std::uint64_t first,
            std::vector<std::uint32_t> tokens, const std::vector<std::uint8_t>& word_starts = {}) {
  Masked result{std::move(tokens), {}};
  masker.mask(epoch, document, first + result.tokens.size(), first, result.tokens, {0, word_starts},
              result.masked);
  return result;
}

TEST(Masker, ChoosesFifteenPercentAndReplacesEightyTenTen) {
  const CorpusInfo info = sample_info(20000);
  const Masker masker(info, DataOptions{});
  constexpr std::size_t kTokens = 4000000;
  const Masked result = mask(masker, 0, 9, 0, ordinary_tokens(kTokens));
  std::size_t masks = 0, same = 0, random = 0;
  for (const MaskedToken& token : result.masked) {
    EXPECT_EQ(token.original, 77u);
    EXPECT_EQ(result.tokens[token.index], token.replacement);
    if (token.replacement == info.special.mask) {
      ++masks;
    } else if (token.replacement == 77) {
      ++same;
    } else {
      ++random;
    }
  }
  const double chosen = static_cast<double>(result.masked.size());
  EXPECT_NEAR(chosen / kTokens, 0.15, 0.0001);
  EXPECT_NEAR(static_cast<double>(masks) / chosen, 0.8, 0.003);
  EXPECT_NEAR(static_cast<double>(random) / chosen, 0.1, 0.003);
  EXPECT_NEAR(static_cast<double>(same) / chosen, 0.1, 0.003);
}

TEST(Masker, LeavesTheOtherTokensAlone) {
  const CorpusInfo info = sample_info();
  const Masker masker(info, DataOptions{});
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < 10000; ++i) tokens.push_back(10 + i % 390);
  const Masked result = mask(masker, 0, 0, 0, tokens);
  std::vector<std::uint32_t> restored = result.tokens;
  for (const MaskedToken& token : result.masked) restored[token.index] = token.original;
  EXPECT_EQ(restored, tokens);
  EXPECT_NE(result.tokens, tokens);
}

TEST(Masker, RandomTokensAreEveryOrdinaryTokenEquallyOften) {
  CorpusInfo info = sample_info(40);
  info.reserved_ids = {0, 1, 2, 3, 4, 11, 12, 25, 39};
  DataOptions options;
  options.mask_fraction = 1;
  options.mask_token_share = 0;
  options.random_token_share = 1;
  const Masker masker(info, options);
  std::map<std::uint32_t, int> counts;
  const Masked result = mask(masker, 3, 4, 0, std::vector<std::uint32_t>(310000, 30));
  for (const std::uint32_t token : result.tokens) ++counts[token];
  EXPECT_EQ(counts.size(), 31u);
  for (const auto& [token, count] : counts) {
    EXPECT_FALSE(std::binary_search(info.reserved_ids.begin(), info.reserved_ids.end(), token));
    EXPECT_NEAR(count, 10000, 500) << token;
  }
}

TEST(Masker, NeverTouchesReservedTokens) {
  const CorpusInfo info = sample_info();
  DataOptions options;
  options.mask_fraction = 1;
  const Masker masker(info, options);
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < 2000; ++i) tokens.push_back(i % 20);
  const Masked result = mask(masker, 0, 0, 0, tokens);
  EXPECT_EQ(result.masked.size(), 1000u);
  for (const MaskedToken& token : result.masked) EXPECT_GE(token.original, 10u);
}

TEST(Masker, DependsOnSeedEpochAndDocument) {
  const CorpusInfo info = sample_info();
  DataOptions options;
  const Masker masker(info, options);
  options.seed = 2;
  const Masker other_seed(info, options);
  const auto base = mask(masker, 0, 0, 0, ordinary_tokens(1000)).tokens;
  EXPECT_EQ(base, mask(masker, 0, 0, 0, ordinary_tokens(1000)).tokens);
  EXPECT_NE(base, mask(masker, 1, 0, 0, ordinary_tokens(1000)).tokens);
  EXPECT_NE(base, mask(masker, 0, 1, 0, ordinary_tokens(1000)).tokens);
  EXPECT_NE(base, mask(other_seed, 0, 0, 0, ordinary_tokens(1000)).tokens);
}

TEST(Masker, WholeWordsAreMaskedTogetherAtTheSameRate) {
  const CorpusInfo info = sample_info();
  DataOptions options;
  options.masking = Masking::kWholeWord;
  const Masker masker(info, options);
  std::size_t tokens = 0, chosen = 0, kept_words = 0, mask_words = 0, words = 0;
  for (std::uint64_t d = 0; const SampleDocument& document : sample_documents(8, 2000, 2000)) {
    const Masked result = mask(masker, 0, d++, 0, document.ids, document.word_start);
    std::vector<bool> is_chosen(document.ids.size(), false);
    for (const MaskedToken& token : result.masked) is_chosen[token.index] = true;
    for (std::size_t i = 0; i < document.ids.size(); ++i) {
      if (document.word_start[i] == 0) {
        ASSERT_EQ(is_chosen[i], is_chosen[i - 1]);
        if (is_chosen[i]) {
          ASSERT_EQ(result.tokens[i] == info.special.mask,
                    result.tokens[i - 1] == info.special.mask);
        }
      } else if (is_chosen[i]) {
        ++words;
        mask_words += result.tokens[i] == info.special.mask;
        kept_words += result.tokens[i] == document.ids[i];
      }
    }
    tokens += document.ids.size();
    chosen += result.masked.size();
  }
  EXPECT_GT(tokens, 1500000u);
  EXPECT_NEAR(static_cast<double>(chosen) / static_cast<double>(tokens), 0.15, 0.0005);
  EXPECT_NEAR(static_cast<double>(mask_words) / static_cast<double>(words), 0.8, 0.005);
  EXPECT_NEAR(static_cast<double>(kept_words) / static_cast<double>(words), 0.1, 0.005);
}

TEST(Masker, RefusesSharesOutOfRange) {
  const CorpusInfo info = sample_info();
  const auto refused = [&info](double fraction, double masks, double random) {
    DataOptions options;
    options.mask_fraction = fraction;
    options.mask_token_share = masks;
    options.random_token_share = random;
    EXPECT_THROW(Masker(info, options), std::invalid_argument);
  };
  refused(1.5, 0.8, 0.1);
  refused(-0.1, 0.8, 0.1);
  refused(0.15, 0.8, 0.3);
  refused(0.15, -0.1, 0.3);
  refused(std::nan(""), 0.8, 0.1);
  CorpusInfo reserved = sample_info(10);
  EXPECT_THROW(Masker(reserved, DataOptions{}), CorpusError);
}

// A run that was interrupted resumes under a later build: masks are part of the format.
TEST(Masker, MasksAreFixedForEver) {
  const CorpusInfo info = sample_info();
  const Masker masker(info, DataOptions{});
  std::uint64_t hash = 0;
  for (const MaskedToken& token : mask(masker, 3, 5, 7, ordinary_tokens(1000)).masked) {
    hash += mask_hash(3, 5, 7 + token.index, token.replacement);
  }
  EXPECT_EQ(hash, 11271328720950525151u);
}

}  // namespace
}  // namespace tupelo::masker_test
