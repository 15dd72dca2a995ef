#include "data/best_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>

namespace tupelo::best_fit_test {
namespace {

using Sizes = std::vector<std::uint32_t>;

std::vector<Sizes> bins_of(const Sizes& sizes, std::uint32_t capacity) {
  const Bins bins = best_fit(sizes, capacity);
  std::vector<Sizes> result(bins.count());
  for (std::uint64_t bin = 0; bin < bins.count(); ++bin) {
    for (std::uint64_t i = bins.first[bin]; i < bins.first[bin + 1]; ++i) {
      result[bin].push_back(static_cast<std::uint32_t>(bins.items[i]));
    }
  }
  return result;
}

TEST(BestFit, TakesTheFullestBinThatHoldsAnItem) {
  // 7 | 6 | 5; then 4 fits 6 exactly, 3 fits 7 exactly, 2 and 2 go to 5.
  EXPECT_EQ(bins_of({2, 5, 3, 7, 4, 6, 2}, 10), (std::vector<Sizes>{{3, 2}, {5, 4}, {1, 0, 6}}));
  EXPECT_EQ(bins_of({5, 5, 5}, 10), (std::vector<Sizes>{{0, 1}, {2}}));
  EXPECT_EQ(bins_of({0, 3, 0}, 3), (std::vector<Sizes>{{1}}));
  EXPECT_TRUE(bins_of({}, 3).empty());
  EXPECT_TRUE(bins_of({0, 0}, 3).empty());
  EXPECT_THROW(best_fit({4}, 3), std::invalid_argument);
}

TEST(BestFit, HoldsEveryItemOnceAndNoBinTooMuch) {
  std::mt19937_64 random(5);
  for (const std::uint32_t capacity : {1u, 2u, 16u, 128u, 512u}) {
    Sizes sizes(2000);
    for (std::uint32_t& size : sizes) size = static_cast<std::uint32_t>(random() % (capacity + 1));
    const Bins bins = best_fit(sizes, capacity);
    std::vector<int> used(sizes.size());
    std::uint32_t before = capacity;
    for (std::uint64_t bin = 0; bin < bins.count(); ++bin) {
      std::uint32_t sum = 0;
      for (std::uint64_t i = bins.first[bin]; i < bins.first[bin + 1]; ++i) {
        sum += sizes[bins.items[i]];
        ++used[bins.items[i]];
      }
      EXPECT_LE(sum, capacity);
      EXPECT_GT(before + sum, capacity) << "two bins could be one";
      before = sum;
    }
    for (std::size_t item = 0; item < sizes.size(); ++item) {
      EXPECT_EQ(used[item], sizes[item] > 0 ? 1 : 0);
    }
    const auto fewest = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}) / capacity;
    EXPECT_LE(bins.count(), fewest * 11 / 9 + 5);
  }
}

TEST(BestFit, WastesLittleOfRowsOfTextDocuments) {
  // Lengths of a corpus of articles: log-normal, with a long tail.
  std::mt19937_64 random(11);
  std::lognormal_distribution<double> length(4.8, 0.9);
  Sizes sizes(20000);
  std::uint64_t tokens = 0;
  for (std::uint32_t& size : sizes) {
    size = 2 + static_cast<std::uint32_t>(std::fmod(length(random), 509.0)) + 1;
    tokens += size;
  }
  const Bins bins = best_fit(sizes, 512);
  EXPECT_LT(1.0 - static_cast<double>(tokens) / (512.0 * static_cast<double>(bins.count())), 0.005);
}

}  // namespace
}  // namespace tupelo::best_fit_test
