#include "model/position/log_buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace tupelo::log_buckets_test {
namespace {

TEST(LogBuckets, EqualTheLogarithmForUsualSettings) {
  const std::pair<int, int> settings[] = {{256, 512}, {32, 128}, {4, 8}, {64, 512}, {16, 40}};
  for (const auto& [count, longest] : settings) {
    const LogBuckets buckets(count, longest);
    const std::int64_t mid = count / 2;
    for (std::int64_t distance = 0; distance < 1000; ++distance) {
      const auto n = std::min<std::int64_t>(distance, longest - 1);
      const double passed = std::log(static_cast<double>(n) / mid) /
                            std::log(static_cast<double>(longest - 1) / mid) * (mid - 1);
      const std::int64_t expected =
          n <= mid ? n : mid + static_cast<std::int64_t>(std::ceil(passed - 1e-12));
      ASSERT_EQ(buckets.of(distance), expected) << count << " " << longest << " " << distance;
      ASSERT_EQ(buckets.of(-distance), -expected);
    }
    EXPECT_EQ(buckets.of(100000), count - 1);
  }
}

// ln(6/3) / ln(12/3) * 2 is exactly 1.
TEST(LogBuckets, DistancesOnALimitBelongBelowIt) {
  const LogBuckets buckets(6, 13);
  EXPECT_EQ(buckets.of(5), 4);
  EXPECT_EQ(buckets.of(6), 4);
  EXPECT_EQ(buckets.of(7), 5);
  EXPECT_EQ(buckets.of(12), 5);
}

TEST(LogBuckets, AreExactWhenTheyReachFartherThanDistances) {
  const LogBuckets buckets(256, 9);
  EXPECT_EQ(buckets.of(7), 7);
  EXPECT_EQ(buckets.of(8), 8);
  EXPECT_EQ(buckets.of(50), 8);
  EXPECT_EQ(buckets.of(-50), -8);
}

TEST(LogBuckets, RefuseWhatHasNoBuckets) {
  EXPECT_THROW(LogBuckets(2, 8), std::invalid_argument);
  EXPECT_THROW(LogBuckets(7, 8), std::invalid_argument);
  EXPECT_THROW(LogBuckets(8, 1), std::invalid_argument);
}

}  // namespace
}  // namespace tupelo::log_buckets_test
