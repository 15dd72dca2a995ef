#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "data/cleaning/duplicate_finder.h"
#include "data/cleaning/external_sorter.h"
#include "data/cleaning/near_duplicates.h"
#include "data/content_digest.h"
#include "data/tokenizer/utf8.h"
#include "tests/data/sample_corpus.h"

namespace tupelo::duplicates_test {
namespace {

namespace fs = std::filesystem;

template <typename Value>
std::vector<Value> all_of(const ExternalSorter<Value>& sorter) {
  typename ExternalSorter<Value>::Reader reader(sorter);
  std::vector<Value> all;
  Value value;
  while (reader.next(value)) all.push_back(value);
  return all;
}

TEST(ExternalSorter, SortsWhatDoesNotFit) {
  const TemporaryFolder folder;
  std::mt19937_64 random(3);
  for (const std::size_t count : {0u, 1u, 99u, 100u, 101u, 5000u}) {
    ExternalSorter<std::uint64_t> sorter(folder / "run", 100 * sizeof(std::uint64_t));
    std::vector<std::uint64_t> expected;
    for (std::size_t i = 0; i < count; ++i) {
      expected.push_back(random() % 1000);
      sorter.add(expected.back());
    }
    std::sort(expected.begin(), expected.end());
    sorter.finish();
    EXPECT_EQ(fs::exists(folder / "run-0"), count > 100);
    EXPECT_EQ(all_of(sorter), expected);
    EXPECT_EQ(all_of(sorter), expected) << "a second time";
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(DuplicateFinder, FindsAllButTheFirst) {
  const TemporaryFolder folder;
  std::mt19937_64 random(4);
  for (const std::size_t memory : {std::size_t{1} << 20, std::size_t{2000}}) {
    DuplicateFinder finder(folder.path(), memory);
    std::map<std::uint64_t, std::vector<std::uint64_t>> places;
    for (std::uint64_t document = 0; document < 300; ++document) {
      for (std::uint64_t line = 0; line < 5; ++line) {
        const std::uint64_t text = random() % 700;
        places[text].push_back(position_of(document, line));
        finder.add({text, text * 3, position_of(document, line)});
      }
    }
    finder.finish();
    std::vector<std::uint64_t> expected;
    for (const auto& [text, positions] : places) {
      expected.insert(expected.end(), positions.begin() + 1, positions.end());
    }
    std::sort(expected.begin(), expected.end());
    for (int pass = 0; pass < 2; ++pass) {
      DuplicateFinder::Positions positions(finder);
      std::vector<std::uint64_t> found;
      while (const auto position = positions.next()) found.push_back(*position);
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(DuplicateFinder, GivesAPositionOnce) {
  const TemporaryFolder folder;
  DuplicateFinder finder(folder.path(), 1 << 20);
  for (std::uint64_t band = 0; band < 20; ++band) {
    for (const std::uint64_t document : {5u, 2u, 2u}) finder.add({band, 0, document});
  }
  finder.finish();
  DuplicateFinder::Positions positions(finder);
  EXPECT_EQ(positions.next(), 5u);
  EXPECT_EQ(positions.next(), std::nullopt);
}

// Random Chinese, a share of whose characters is replaced.
std::u32string made_up_text(std::uint64_t seed, std::size_t characters) {
  std::mt19937_64 random(seed);
  std::u32string text;
  while (text.size() < characters) text += static_cast<char32_t>(0x4E00 + random() % 3000);
  return text;
}
std::string utf8(const std::u32string& text) {
  std::string result;
  for (const char32_t code : text) result += to_utf8(code);
  return result;
}

bool are_alike(const std::string& a, const std::string& b) {
  const auto first = near_duplicate_bands(a, 0), second = near_duplicate_bands(b, 0);
  for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    if (first[i] == second[i]) return true;
  }
  return false;
}

double similarity(const std::u32string& a, const std::u32string& b) {
  std::set<std::u32string> grams_a, grams_b, both;
  for (std::size_t i = 0; i + 5 <= a.size(); ++i) grams_a.insert(a.substr(i, 5));
  for (std::size_t i = 0; i + 5 <= b.size(); ++i) grams_b.insert(b.substr(i, 5));
  for (const auto& gram : grams_a) {
    if (grams_b.contains(gram)) both.insert(gram);
  }
  return static_cast<double>(both.size()) /
         static_cast<double>(grams_a.size() + grams_b.size() - both.size());
}

// Share of pairs that are taken for alike, and their mean similarity, when `changes` of 1500
// characters differ.
std::pair<double, double> measured(std::size_t changes) {
  int alike = 0;
  double sum = 0;
  constexpr int kPairs = 300;
  for (int i = 0; i < kPairs; ++i) {
    const std::u32string text = made_up_text(static_cast<std::uint64_t>(i), 1500);
    std::u32string changed = text;
    std::mt19937_64 random(static_cast<std::uint64_t>(i) + 1000);
    for (std::size_t c = 0; c < changes; ++c) changed[random() % changed.size()] = U'龘';
    alike += are_alike(utf8(text), utf8(changed));
    sum += similarity(text, changed);
  }
  return {alike / static_cast<double>(kPairs), sum / kPairs};
}

TEST(NearDuplicates, FollowTheCurveOfTheBands) {
  for (const std::size_t changes : {10u, 30u, 50u, 80u, 150u, 400u}) {
    const auto [share, similar] = measured(changes);
    const double expected = 1 - std::pow(1 - std::pow(similar, kRows), kBands);
    // Three standard deviations of 300 pairs, and what the spread of similarity bends.
    EXPECT_NEAR(share, expected, 0.12) << changes << " changes, similarity " << similar;
  }
  EXPECT_GT(measured(10).first, 0.99);
  EXPECT_EQ(measured(400).first, 0);
}

TEST(NearDuplicates, LookNeitherAtSpaceNorAtShortTexts) {
  const std::string text = utf8(made_up_text(1, 500));
  std::string spaced;
  for (std::size_t i = 0; i < text.size(); i += 3)
    spaced += text.substr(i, 3) + (i % 2 ? " " : "\n");
  EXPECT_EQ(near_duplicate_bands(text, 9), near_duplicate_bands(spaced, 9));
  EXPECT_EQ(near_duplicate_bands(text, 9).size(), 20u);
  EXPECT_EQ(near_duplicate_bands(text, 9)[3].position, 9u);
  EXPECT_EQ(near_duplicate_bands(utf8(made_up_text(1, 104)), 0).size(), 20u);
  EXPECT_TRUE(near_duplicate_bands(utf8(made_up_text(1, 103)), 0).empty());
  EXPECT_TRUE(near_duplicate_bands("", 0).empty());
}

}  // namespace
}  // namespace tupelo::duplicates_test
