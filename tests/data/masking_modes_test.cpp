// What is chosen together, how often, and that nothing but the place in the document matters.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "data/masker.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::masking_modes_test {
namespace {

constexpr Masking kModes[] = {Masking::kToken, Masking::kWholeWord, Masking::kSpan,
                              Masking::kNgram};
constexpr Masking kWordModes[] = {Masking::kWholeWord, Masking::kSpan, Masking::kNgram};
constexpr MaskUnit kUnits[] = {MaskUnit::kToken, MaskUnit::kWord, MaskUnit::kSpan};

DataOptions options_of(Masking masking, MaskUnit unit = MaskUnit::kWord) {
  DataOptions options;
  options.masking = masking;
  options.mask_unit = unit;
  return options;
}

struct Masked {
  std::vector<std::uint32_t> tokens;
  std::vector<MaskedToken> masked;
};

// Document tokens [first, end), with as many flags around them as the masker wants.
Masked mask_part(const Masker& masker, const SampleDocument& document, std::uint64_t first,
                 std::uint64_t end, std::uint64_t epoch, std::uint64_t number) {
  Masked result{{document.ids.begin() + static_cast<std::ptrdiff_t>(first),
                 document.ids.begin() + static_cast<std::ptrdiff_t>(end)},
                {}};
  const std::uint64_t length = document.ids.size();
  const TokenRange range = masker.flags_for({first, end}, length);
  const std::span<const std::uint8_t> flags(document.word_start);
  masker.mask(epoch, number, length, first, result.tokens,
              {range.first, flags.subspan(range.first, range.end - range.first)}, result.masked);
  return result;
}

Masked mask(const Masker& masker, const SampleDocument& document, std::uint64_t epoch = 0,
            std::uint64_t number = 0) {
  return mask_part(masker, document, 0, document.ids.size(), epoch, number);
}

std::vector<bool> chosen_in(const Masked& result) {
  std::vector<bool> chosen(result.tokens.size(), false);
  for (const MaskedToken& token : result.masked) chosen[token.index] = true;
  return chosen;
}

// About a million tokens, words of 1 to 4 tokens as in Chinese.
const std::vector<SampleDocument>& real_like() {
  static const std::vector<SampleDocument> documents = sample_documents(8, 1100, 2000);
  return documents;
}

// One document of words of these lengths.
SampleDocument document_of(const std::vector<std::size_t>& word_lengths) {
  SampleDocument document;
  for (const std::size_t length : word_lengths) {
    for (std::size_t i = 0; i < length; ++i) {
      document.ids.push_back(77);
      document.word_start.push_back(i == 0 ? 1 : 0);
    }
  }
  return document;
}

// Not in the mean alone: whatever million tokens one looks at.
TEST(MaskingModes, TheBudgetIsFifteenPercentOfEveryMillionTokens) {
  const CorpusInfo info = sample_info();
  const std::vector<SampleDocument> one_liners = sample_documents(4, 33000, 60);
  for (const std::vector<SampleDocument>* documents : {&real_like(), &one_liners}) {
    for (const Masking masking : kModes) {
      const Masker masker(info, options_of(masking));
      double tokens = 0, chosen = 0;
      int windows = 0;
      for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
        for (std::uint64_t d = 0; d < documents->size(); ++d) {
          const Masked result = mask(masker, (*documents)[d], epoch, d);
          tokens += static_cast<double>(result.tokens.size());
          chosen += static_cast<double>(result.masked.size());
          if (tokens < 1e6) continue;
          EXPECT_NEAR(chosen / tokens, 0.15, 0.001) << static_cast<int>(masking);
          tokens = chosen = 0;
          ++windows;
        }
      }
      EXPECT_GE(windows, 10);
    }
  }
}

TEST(MaskingModes, AWordIsChosenAsOftenAsAnyOther) {
  const CorpusInfo info = sample_info();
  const SampleDocument document =
      document_of({1, 1, 7, 2, 1, 3, 1, 12, 1, 1, 2, 2, 5, 1, 1, 1, 4, 20, 1, 3});
  for (const Masking masking : kModes) {
    const Masker masker(info, options_of(masking));
    std::vector<double> chosen(document.ids.size(), 0);
    constexpr int kDocuments = 40000;
    for (std::uint64_t d = 0; d < kDocuments; ++d) {
      for (const MaskedToken& token : mask(masker, document, 0, d).masked) ++chosen[token.index];
    }
    for (const double count : chosen) {
      EXPECT_NEAR(count / kDocuments, 0.15, 0.009) << static_cast<int>(masking);
    }
  }
}

TEST(MaskingModes, AnyFractionIsKeptAndTheFirstWordsAreNoDifferent) {
  const CorpusInfo info = sample_info();
  const SampleDocument document = document_of(std::vector<std::size_t>(24, 1));
  for (const Masking masking : kWordModes) {
    for (const double fraction : {0.0, 0.02, 0.4, 0.9, 1.0}) {
      DataOptions options = options_of(masking);
      options.mask_fraction = fraction;
      const Masker masker(info, options);
      std::vector<double> chosen(24, 0);
      constexpr int kDocuments = 20000;
      for (std::uint64_t d = 0; d < kDocuments; ++d) {
        for (const MaskedToken& token : mask(masker, document, 0, d).masked) ++chosen[token.index];
      }
      for (const double count : chosen) {
        EXPECT_NEAR(count / kDocuments, fraction, 0.015) << static_cast<int>(masking);
      }
    }
  }
}

TEST(MaskingModes, UnmaskedTokensNeverChange) {
  const CorpusInfo info = sample_info();
  for (const Masking masking : kModes) {
    for (const MaskUnit unit : kUnits) {
      const Masker masker(info, options_of(masking, unit));
      for (std::uint64_t d = 0; d < 100; ++d) {
        const SampleDocument& document = real_like()[d];
        const Masked result = mask(masker, document, 3, d);
        std::vector<std::uint32_t> restored = result.tokens;
        for (const MaskedToken& token : result.masked) {
          ASSERT_EQ(restored[token.index], token.replacement);
          restored[token.index] = token.original;
        }
        ASSERT_EQ(restored, document.ids);
      }
    }
  }
}

TEST(MaskingModes, ReservedTokensInsideWordsAreLeftAlone) {
  const CorpusInfo info = sample_info();
  SampleDocument document = document_of(std::vector<std::size_t>(200, 3));
  for (std::size_t i = 1; i < document.ids.size(); i += 3) document.ids[i] = info.special.unk;
  for (const Masking masking : kWordModes) {
    DataOptions options = options_of(masking);
    options.mask_fraction = 1;
    const Masked result = mask(Masker(info, options), document);
    EXPECT_EQ(result.masked.size(), 400u);
    for (std::size_t i = 1; i < document.ids.size(); i += 3) {
      EXPECT_EQ(result.tokens[i], info.special.unk);
    }
  }
}

TEST(MaskingModes, DoNotDependOnHowADocumentIsCut) {
  const CorpusInfo info = sample_info();
  SampleDocument document = sample_documents(6, 1, 1)[0];
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < 900; ++i) lengths.push_back(i % 37 == 0 ? 33 : 1 + i * i % 5);
  document = document_of(lengths);
  for (const Masking masking : kModes) {
    for (const MaskUnit unit : kUnits) {
      for (const std::int64_t longest : {1, 3, 4, 32, 33}) {
        DataOptions options = options_of(masking, unit);
        options.longest_word_tokens = longest;
        options.mask_fraction = 0.4;
        const Masker masker(info, options);
        const auto whole = mask(masker, document, 1, 2).tokens;
        for (const std::size_t part : {1, 3, 7, 126, 1000}) {
          std::vector<std::uint32_t> joined;
          for (std::size_t first = 0; first < document.ids.size(); first += part) {
            const std::size_t end = std::min(first + part, document.ids.size());
            const auto tokens = mask_part(masker, document, first, end, 1, 2).tokens;
            joined.insert(joined.end(), tokens.begin(), tokens.end());
          }
          ASSERT_EQ(joined, whole) << static_cast<int>(masking) << " cut every " << part;
        }
      }
    }
  }
}

TEST(MaskingModes, WordsAreMaskedWhole) {
  const CorpusInfo info = sample_info();
  for (const Masking masking : kWordModes) {
    const Masker masker(info, options_of(masking));
    for (std::uint64_t d = 0; d < 200; ++d) {
      const SampleDocument& document = real_like()[d];
      const std::vector<bool> chosen = chosen_in(mask(masker, document, 0, d));
      for (std::size_t i = 1; i < chosen.size(); ++i) {
        if (document.word_start[i] == 0) {
          ASSERT_EQ(chosen[i], chosen[i - 1]);
        }
      }
    }
  }
}

TEST(MaskingModes, AWordBeyondTheCapIsMaskedByTokens) {
  const CorpusInfo info = sample_info();
  const SampleDocument document = document_of({1, 32, 33, 20000});
  const std::vector<bool> chosen =
      chosen_in(mask(Masker(info, options_of(Masking::kWholeWord)), document));
  EXPECT_EQ(std::count(chosen.begin() + 1, chosen.begin() + 33, chosen[1]), 32);
  const auto of_long_word = std::count(chosen.begin() + 66, chosen.end(), true);
  EXPECT_NEAR(static_cast<double>(of_long_word) / 20000, 0.15, 0.002);
  EXPECT_LT(std::count(chosen.begin() + 33, chosen.begin() + 66, true), 20);
}

// Runs of masked words, when spans are so rare that they do not meet.
std::map<std::size_t, double> run_shares(const DataOptions& options) {
  const CorpusInfo info = sample_info();
  const Masker masker(info, options);
  const SampleDocument document = document_of(std::vector<std::size_t>(2000000, 1));
  const std::vector<bool> chosen = chosen_in(mask(masker, document));
  std::map<std::size_t, double> runs;
  double total = 0;
  for (std::size_t i = 0; i < chosen.size();) {
    std::size_t end = i;
    while (end < chosen.size() && chosen[end]) ++end;
    if (end > i) {
      ++runs[end - i];
      ++total;
    }
    i = end + 1;
  }
  for (auto& [length, share] : runs) share /= total;
  return runs;
}

TEST(MaskingModes, SpansHaveSpanBertsLengths) {
  DataOptions options = options_of(Masking::kSpan);
  options.mask_fraction = 0.01;
  const auto runs = run_shares(options);
  double total = 0;
  for (int n = 1; n <= 10; ++n) total += 0.2 * std::pow(0.8, n - 1);
  for (std::size_t n = 1; n <= 10; ++n) {
    const double expected = 0.2 * std::pow(0.8, static_cast<double>(n) - 1) / total;
    EXPECT_NEAR(runs.at(n), expected, 0.015) << n;
  }
}

TEST(MaskingModes, NgramsAreAsFrequentAsTheyAreShort) {
  DataOptions options = options_of(Masking::kNgram);
  options.mask_fraction = 0.01;
  const auto runs = run_shares(options);
  const double total = 1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4;
  for (std::size_t n = 1; n <= 4; ++n) {
    EXPECT_NEAR(runs.at(n), 1 / static_cast<double>(n) / total, 0.015) << n;
  }
}

// Of the tokens that follow another one in the same word and the same run, how many became of the
// same kind: [MASK] or not.
double same_kind_within(const DataOptions& options, bool across_words) {
  const CorpusInfo info = sample_info();
  const Masker masker(info, options);
  double pairs = 0, same = 0;
  for (std::uint64_t d = 0; d < 400; ++d) {
    const SampleDocument& document = real_like()[d];
    const Masked result = mask(masker, document, 0, d);
    const std::vector<bool> chosen = chosen_in(result);
    for (std::size_t i = 1; i < chosen.size(); ++i) {
      if (!chosen[i] || !chosen[i - 1] || (document.word_start[i] == 1) != across_words) continue;
      ++pairs;
      same +=
          (result.tokens[i] == info.special.mask) == (result.tokens[i - 1] == info.special.mask);
    }
  }
  EXPECT_GT(pairs, 10000);
  return same / pairs;
}

TEST(MaskingModes, AUnitIsReplacedInOneManner) {
  const double independent = 0.8 * 0.8 + 0.2 * 0.2;
  for (const Masking masking : kWordModes) {
    EXPECT_NEAR(same_kind_within(options_of(masking, MaskUnit::kToken), false), independent, 0.02);
    EXPECT_EQ(same_kind_within(options_of(masking, MaskUnit::kWord), false), 1);
    EXPECT_EQ(same_kind_within(options_of(masking, MaskUnit::kSpan), false), 1);
  }
  for (const Masking masking : {Masking::kSpan, Masking::kNgram}) {
    EXPECT_NEAR(same_kind_within(options_of(masking, MaskUnit::kWord), true), independent, 0.02);
    EXPECT_GT(same_kind_within(options_of(masking, MaskUnit::kSpan), true), 0.8);
  }
}

TEST(MaskingModes, EightyTenTenInEveryMode) {
  const CorpusInfo info = sample_info(20000);
  const std::vector<SampleDocument> documents = sample_documents(8, 1100, 2000, 20000);
  for (const Masking masking : kModes) {
    for (const MaskUnit unit : kUnits) {
      const Masker masker(info, options_of(masking, unit));
      double chosen = 0, masks = 0, same = 0;
      for (std::uint64_t d = 0; d < documents.size(); ++d) {
        for (const MaskedToken& token : mask(masker, documents[d], 0, d).masked) {
          ++chosen;
          masks += token.replacement == info.special.mask;
          same += token.replacement == token.original;
        }
      }
      EXPECT_NEAR(masks / chosen, 0.8, 0.01);
      EXPECT_NEAR(same / chosen, 0.1, 0.01);
    }
  }
}

// A run that was interrupted resumes under a later build: masks are part of the format.
TEST(MaskingModes, MasksAreFixedForEver) {
  const CorpusInfo info = sample_info();
  const auto hash_of = [&](Masking masking, MaskUnit unit) {
    std::uint64_t hash = 0;
    const Masked result = mask(Masker(info, options_of(masking, unit)), real_like()[3], 3, 5);
    for (const MaskedToken& token : result.masked) {
      hash += mask_hash(3, 5, token.index, token.replacement);
    }
    return hash;
  };
  EXPECT_EQ(hash_of(Masking::kWholeWord, MaskUnit::kWord), 15217765718729081496u);
  EXPECT_EQ(hash_of(Masking::kWholeWord, MaskUnit::kToken), 15977246265201233357u);
  EXPECT_EQ(hash_of(Masking::kSpan, MaskUnit::kWord), 2984631297669485229u);
  EXPECT_EQ(hash_of(Masking::kSpan, MaskUnit::kSpan), 1686564465270468424u);
  EXPECT_EQ(hash_of(Masking::kNgram, MaskUnit::kWord), 18182488936094486198u);
}

TEST(MaskingModes, RefusesLengthsOutOfRange) {
  const CorpusInfo info = sample_info();
  const auto refused = [&info](Masking masking, auto change) {
    DataOptions options = options_of(masking);
    change(options);
    EXPECT_THROW(Masker(info, options), std::invalid_argument);
  };
  for (const std::int64_t words : {-1, 0, 65}) {
    refused(Masking::kSpan, [words](DataOptions& o) { o.span_words = words; });
    refused(Masking::kNgram, [words](DataOptions& o) { o.ngram_words = words; });
  }
  for (const double end : {0.0, -0.1, 1.1, std::nan("")}) {
    refused(Masking::kSpan, [end](DataOptions& o) { o.span_probability = end; });
  }
  for (const std::int64_t tokens : {-1, 0, 1025}) {
    refused(Masking::kWholeWord, [tokens](DataOptions& o) { o.longest_word_tokens = tokens; });
  }
}

}  // namespace
}  // namespace tupelo::masking_modes_test
