#include "data/mask_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "data/masker.h"
#include "data/mixing.h"
#include "data/philox.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::mask_choice_test {
namespace {

// The law as data/FORMAT.md states it, straight from the generator, word by word around the circle.
class WrittenLaw {
 public:
  WrittenLaw(std::vector<double> length_above, std::uint64_t epoch, std::uint64_t document)
      : length_above_(std::move(length_above)), epoch_(epoch), document_(document) {}

  // Words by their first tokens.
  std::set<std::uint64_t> chosen(const std::vector<std::uint64_t>& words,
                                 std::uint64_t length) const {
    std::set<std::uint64_t> chosen;
    for (std::size_t word = 0; word < words.size();) {
      const std::uint64_t block = words[word] / 512;
      std::vector<Word> of_block;
      for (; word < words.size() && words[word] / 512 == block; ++word) {
        of_block.push_back({words[word], word + 1 < words.size() ? words[word + 1] : length});
      }
      add_block(block, of_block, chosen);
    }
    return chosen;
  }

 private:
  struct Word {
    std::uint64_t begin, end;
  };
  using Span = std::vector<Word>;

  double draw(std::uint64_t stream, std::uint64_t block, std::uint64_t i) const {
    const std::uint64_t key = hash_numbers(1, epoch_, stream);
    return std::ldexp(philox(256 * block + i / 4, document_, key)[i % 4], -32);
  }

  std::vector<Span> spans_of(std::uint64_t block, const std::vector<Word>& words) const {
    std::vector<Span> spans;
    for (std::size_t word = 0; word < words.size();) {
      const double u = draw(3, block, spans.size());
      std::size_t n = 1;
      while (n < length_above_.size() && u < length_above_[n]) ++n;
      spans.emplace_back();
      for (; n > 0 && word < words.size(); --n) spans.back().push_back(words[word++]);
    }
    return spans;
  }

  void add_block(std::uint64_t block, const std::vector<Word>& words,
                 std::set<std::uint64_t>& chosen) const {
    std::vector<Span> spans = spans_of(block, words);
    const double first = static_cast<double>(words.front().begin);
    const double n = static_cast<double>(words.back().end) - first, x = n * draw(1, block, 0);
    double longest = 0;
    std::size_t cut = 0;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      longest = std::max(longest, static_cast<double>(spans[i].back().end - spans[i][0].begin));
      if (static_cast<double>(spans[i][0].begin) - first <= x) cut = i;
    }
    const auto choose = [&](const Span& span, auto place_of) {
      for (const Word& word : span) {
        const double place = place_of(16 * longest <= n ? span[0].begin : word.begin);
        if (place < 0.15 * n) chosen.insert(word.begin);
      }
    };
    choose(spans[cut], [&](std::uint64_t begin) {
      const double at = static_cast<double>(begin) - first;
      return at >= x ? at - x : n - x + at;
    });
    double place = static_cast<double>(spans[cut].back().end) - first - x;
    spans.erase(spans.begin() + static_cast<std::ptrdiff_t>(cut));
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const auto left = static_cast<double>(spans.size() - i);
      std::swap(spans[i], spans[i + static_cast<std::size_t>(draw(1, block, i + 1) * left)]);
      choose(spans[i], [&](std::uint64_t begin) {
        return place + static_cast<double>(begin - spans[i][0].begin);
      });
      place += static_cast<double>(spans[i].back().end - spans[i][0].begin);
    }
  }

  std::vector<double> length_above_;  // [n]: P(length > n)
  std::uint64_t epoch_, document_;
};

TEST(MaskChoice, TheChoiceFollowsTheWrittenLaw) {
  const CorpusInfo info = sample_info();
  const std::vector<SampleDocument> documents = sample_documents(8, 40, 2000);
  std::vector<double> geometric{1};
  double weight = 0.2, sum = 0;
  for (int n = 0; n < 10; ++n, weight *= 0.8) sum += weight;
  weight = 0.2;
  for (int n = 1; n < 10; ++n, weight *= 0.8) geometric.push_back(geometric.back() - weight / sum);
  const double all = 1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4;
  const std::vector<double> by_length{1, 1 - 1 / all, 1 - 1.5 / all, 0.25 / all};
  constexpr std::uint64_t kEpoch = 4, kDocument = 11;
  for (const auto& [masking, above] :
       std::map<Masking, std::vector<double>>{{Masking::kToken, {1}},
                                              {Masking::kWholeWord, {1}},
                                              {Masking::kSpan, geometric},
                                              {Masking::kNgram, by_length}}) {
    std::size_t blocks = 0;
    for (std::size_t d = 0; d < 40; ++d) {
      const SampleDocument& document = documents[d];
      std::vector<std::uint64_t> words;
      for (std::uint64_t i = 0; i < document.ids.size(); ++i) {
        if (masking == Masking::kToken || document.word_start[i] == 1) words.push_back(i);
      }
      DataOptions options;
      options.masking = masking;
      const std::set<std::uint64_t> expected =
          WrittenLaw(above, kEpoch, kDocument).chosen(words, document.ids.size());
      const Masker masker(info, options);
      std::vector<std::uint32_t> tokens = document.ids;
      std::vector<MaskedToken> masked;
      masker.mask(kEpoch, kDocument, tokens.size(), 0, tokens, {0, document.word_start}, masked);
      std::vector<bool> chosen(tokens.size(), false);
      for (const MaskedToken& token : masked) chosen[token.index] = true;
      for (const std::uint64_t word : words) ASSERT_EQ(chosen[word], expected.count(word) > 0);
      blocks += document.ids.size() / 512;
    }
    EXPECT_GT(blocks, 40u);
  }
}

}  // namespace
}  // namespace tupelo::mask_choice_test
