#include "data/keyed_permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <unordered_set>
#include <vector>

namespace tupelo::keyed_permutation_test {
namespace {

TEST(KeyedPermutation, IsABijectionForEverySmallSize) {
  for (std::uint64_t size = 1; size <= 2000; ++size) {
    const KeyedPermutation permutation(size, 7, 3);
    std::vector<bool> seen(size, false);
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t image = permutation(i);
      ASSERT_LT(image, size);
      ASSERT_FALSE(seen[image]) << "size " << size << " hits " << image << " twice";
      seen[image] = true;
    }
  }
}

TEST(KeyedPermutation, StaysInsideAndDistinctForHugeSizes) {
  for (const std::uint64_t size : {std::uint64_t{1000000000}, std::uint64_t{1} << 40,
                                   (std::uint64_t{1} << 40) + 1, ~std::uint64_t{0}}) {
    const KeyedPermutation permutation(size, 1, 0);
    std::unordered_set<std::uint64_t> images;
    double sum = 0;
    for (std::uint64_t i = 0; i < 50000; ++i) {
      const std::uint64_t index = i % 2 == 0 ? i : size - i;
      const std::uint64_t image = permutation(index);
      ASSERT_LT(image, size);
      images.insert(image);
      sum += static_cast<double>(image) / static_cast<double>(size);
    }
    EXPECT_EQ(images.size(), 50000u);
    // Mean of uniform numbers: 0.5 with a standard error of 0.29 / sqrt(50000) = 0.0013.
    EXPECT_NEAR(sum / 50000, 0.5, 0.007);
  }
}

TEST(KeyedPermutation, DependsOnSeedAndEpochAndNothingElse) {
  const std::uint64_t size = 1000;
  const auto images = [size](std::uint64_t seed, std::uint64_t epoch) {
    const KeyedPermutation permutation(size, seed, epoch);
    std::vector<std::uint64_t> result;
    for (std::uint64_t i = 0; i < size; ++i) result.push_back(permutation(i));
    return result;
  };
  const auto agreements = [](const auto& a, const auto& b) {
    int same = 0;
    for (std::size_t i = 0; i < a.size(); ++i) same += a[i] == b[i];
    return same;
  };
  const auto base = images(5, 2);
  EXPECT_EQ(base, images(5, 2));
  // Two random permutations agree at 1 place on average.
  EXPECT_LT(agreements(base, images(6, 2)), 10);
  EXPECT_LT(agreements(base, images(5, 3)), 10);
  EXPECT_LT(agreements(base, images(2, 5)), 10);
}

TEST(KeyedPermutation, EveryPlaceReachesEveryPlaceAboutEquallyOften) {
  constexpr std::uint64_t kSize = 10, kEpochs = 20000;
  std::vector<std::vector<int>> counts(kSize, std::vector<int>(kSize, 0));
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const KeyedPermutation permutation(kSize, 11, epoch);
    for (std::uint64_t i = 0; i < kSize; ++i) ++counts[i][permutation(i)];
  }
  for (const auto& row : counts) {
    for (const int count : row) EXPECT_NEAR(count, 2000, 5 * std::sqrt(1800.0));
  }
}

// A run that was interrupted resumes under a later build: the order is part of the format.
TEST(KeyedPermutation, OrderIsFixedForEver) {
  const KeyedPermutation permutation(1000, 1, 0);
  const std::vector<std::uint64_t> first = {permutation(0), permutation(1), permutation(2),
                                            permutation(999)};
  EXPECT_EQ(first, (std::vector<std::uint64_t>{925, 285, 911, 586}));
}

TEST(KeyedPermutation, RefusesNothingAndOutside) {
  EXPECT_THROW(KeyedPermutation(0, 1, 1), std::invalid_argument);
  EXPECT_THROW(KeyedPermutation(5, 1, 1)(5), std::out_of_range);
}

TEST(RowHash, SumTellsACompleteEpoch) {
  std::uint64_t sum = 0;
  const KeyedPermutation order(777, 3, 4);
  for (std::uint64_t i = 0; i < 777; ++i) sum += row_hash(4, order(i));
  EXPECT_EQ(sum, complete_epoch_hash(4, 777));
  EXPECT_NE(sum - row_hash(4, 1) + row_hash(4, 2), complete_epoch_hash(4, 777));
  EXPECT_NE(sum, complete_epoch_hash(5, 777));
}

}  // namespace
}  // namespace tupelo::keyed_permutation_test
