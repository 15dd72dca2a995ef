#include "data/corpus_statistics.h"

#include <gtest/gtest.h>

#include "data/row_plan.h"

namespace tupelo::corpus_statistics_test {
namespace {

std::vector<std::uint64_t> offsets_of(const std::vector<std::uint64_t>& lengths) {
  std::vector<std::uint64_t> offsets = {0};
  for (const std::uint64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

TEST(LengthStatistics, AreThoseOfTheDocuments) {
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t i = 200; i > 0; --i) lengths.push_back(3 * i);  // 3, 6, ..., 600
  const LengthStatistics statistics = length_statistics(offsets_of(lengths));
  EXPECT_EQ(statistics.documents, 200u);
  EXPECT_EQ(statistics.tokens, 60300u);
  EXPECT_EQ(statistics.shortest, 3u);
  EXPECT_EQ(statistics.longest, 600u);
  EXPECT_DOUBLE_EQ(statistics.mean, 301.5);
  ASSERT_EQ(statistics.percentiles.size(), 9u);
  EXPECT_EQ(statistics.percentiles[0].tokens, 6u);    // 1 %: the second of 200
  EXPECT_EQ(statistics.percentiles[4].tokens, 300u);  // the median
  EXPECT_EQ(statistics.percentiles[8].tokens, 594u);
  ASSERT_EQ(statistics.above.size(), 2u);
  EXPECT_DOUBLE_EQ(statistics.above[0].documents, 158 / 200.0);  // 129 = 3 * 43 and longer
  EXPECT_DOUBLE_EQ(statistics.above[1].documents, 30 / 200.0);   // 513 = 3 * 171 and longer
  EXPECT_DOUBLE_EQ(statistics.above[1].tokens, 3 * (171 + 200) * 15 / 60300.0);
}

TEST(LengthStatistics, OfNothingAreZero) {
  EXPECT_EQ(length_statistics({0}).documents, 0u);
  EXPECT_TRUE(padding_estimates({0}).empty());
}

// Against the rows themselves.
TEST(PaddingEstimates, CountEmptyPlaces) {
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t i = 0; i < 300; ++i) lengths.push_back(1 + i * i % 700);
  const std::vector<std::uint64_t> offsets = offsets_of(lengths);
  const auto estimates = padding_estimates(offsets);
  ASSERT_EQ(estimates.size(), 6u);
  for (const PaddingEstimate& estimate : estimates) {
    const RowPlan plan(offsets, estimate.packing, estimate.sequence_length);
    std::uint64_t filled = 0;
    for (std::uint64_t row = 0; row < plan.rows(); ++row) {
      const auto pieces = plan.pieces(row);
      filled += 2 * (plan.pieces_are_sequences() ? pieces.size() : 1);
      for (const RowPlan::Piece& piece : pieces) filled += piece.count + (piece.separator ? 1 : 0);
    }
    EXPECT_EQ(estimate.rows, plan.rows());
    EXPECT_NEAR(estimate.padding,
                1 - static_cast<double>(filled) / (static_cast<double>(plan.rows()) *
                                                   static_cast<double>(estimate.sequence_length)),
                1e-12);
  }
  EXPECT_GT(estimates[1].padding, 5 * estimates[2].padding);  // documents alone or packed
}

}  // namespace
}  // namespace tupelo::corpus_statistics_test
