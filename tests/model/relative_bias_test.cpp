#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "model/position/cls_reset.h"
#include "model/position/relative_line.h"
#include "model/position/t5_buckets.h"
#include "model/position/toeplitz.h"
#include "tests/model/formulas.h"

namespace tupelo::relative_bias_test {
namespace {

using torch::Tensor;

std::int64_t bucket_by_logarithm(std::int64_t distance, std::int64_t buckets,
                                 std::int64_t max_distance) {
  const std::int64_t half = buckets / 2, exact = half / 2, n = std::abs(distance);
  const std::int64_t side = distance > 0 ? half : 0;
  if (n < exact) return side + n;
  const double position = std::log(static_cast<double>(n) / exact) /
                          std::log(static_cast<double>(max_distance) / exact) * (half - exact);
  return side + std::min(half - 1, exact + static_cast<std::int64_t>(std::floor(position + 1e-12)));
}

TEST(T5Buckets, EqualTheLogarithmForUsualSettings) {
  const std::pair<int, int> settings[] = {{32, 128}, {32, 256}, {64, 512}, {16, 64},
                                          {8, 6},    {8, 12},   {12, 40},  {4, 9}};
  for (const auto& [buckets, max_distance] : settings) {
    const T5Buckets exact(buckets, max_distance);
    for (std::int64_t distance = -3000; distance <= 3000; ++distance) {
      ASSERT_EQ(exact.of(distance), bucket_by_logarithm(distance, buckets, max_distance))
          << buckets << " " << max_distance << " " << distance;
    }
  }
}

TEST(T5Buckets, KnownValues) {
  const T5Buckets buckets(32, 128);
  EXPECT_EQ(buckets.of(0), 0);
  EXPECT_EQ(buckets.of(-7), 7);
  EXPECT_EQ(buckets.of(-8), 8);
  EXPECT_EQ(buckets.of(-11), 8);
  EXPECT_EQ(buckets.of(-12), 9);
  EXPECT_EQ(buckets.of(-128), 15);
  EXPECT_EQ(buckets.of(-100000), 15);
  EXPECT_EQ(buckets.of(1), 17);
  EXPECT_EQ(buckets.of(128), 31);
  EXPECT_EQ(buckets.line(3), (std::vector<std::int64_t>{2, 1, 0, 17, 18}));
}

TEST(T5Buckets, RefusesWhatHasNoBuckets) {
  EXPECT_THROW(T5Buckets(2, 128), std::invalid_argument);
  EXPECT_THROW(T5Buckets(7, 128), std::invalid_argument);
  EXPECT_THROW(T5Buckets(32, 8), std::invalid_argument);
}

TEST(Toeplitz, PlacesDistancesAndSumsDiagonals) {
  for (const std::int64_t tokens : {1, 2, 5, 8}) {
    const Tensor line = torch::randn({3, 2 * tokens - 1}, torch::kFloat64).requires_grad_();
    const Tensor matrix = toeplitz(line);
    for (std::int64_t i = 0; i < tokens; ++i) {
      for (std::int64_t j = 0; j < tokens; ++j) {
        ASSERT_TRUE(matrix.select(1, i).select(1, j).equal(line.select(1, j - i + tokens - 1)));
      }
    }
    const Tensor gradient = torch::randn_like(matrix);
    matrix.backward(gradient);
    for (std::int64_t distance = 1 - tokens; distance < tokens; ++distance) {
      EXPECT_TRUE(near(line.grad().select(1, distance + tokens - 1),
                       gradient.diagonal(distance, 1, 2).sum(-1), 1e-13));
    }
  }
}

TEST(ClsReset, ReplacesRowAndColumnAndRoutesGradients) {
  for (const bool with_from : {true, false}) {
    const Tensor bias = torch::randn({2, 4, 4}, torch::kFloat64).requires_grad_();
    const Tensor from = torch::randn({2}, torch::kFloat64).requires_grad_();
    const Tensor to = torch::randn({2}, torch::kFloat64).requires_grad_();
    const Tensor result = reset_cls(bias, with_from ? from : Tensor(), to);
    const Tensor gradient = torch::randn_like(result);
    result.backward(gradient);
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t i = 0; i < 4; ++i) {
        for (std::int64_t j = 0; j < 4; ++j) {
          const double expected = i == 0   ? (with_from ? from[h].item<double>() : 0.0)
                                  : j == 0 ? to[h].item<double>()
                                           : bias[h][i][j].item<double>();
          EXPECT_EQ(result[h][i][j].item<double>(), expected);
          EXPECT_EQ(bias.grad()[h][i][j].item<double>(),
                    i == 0 || j == 0 ? 0.0 : gradient[h][i][j].item<double>());
        }
      }
    }
    EXPECT_TRUE(near(to.grad(), gradient.select(2, 0).narrow(1, 1, 3).sum(1), 1e-14));
    if (with_from) {
      EXPECT_TRUE(near(from.grad(), gradient.select(1, 0).sum(1), 1e-14));
    }
  }
}

TEST(ClippedLine, RepeatsTheEndRowsAndAddsTheirGradients) {
  const Tensor table = torch::arange(5, torch::kFloat64).unsqueeze(1).clone().requires_grad_();
  const Tensor line = clipped_line(table, 5);
  EXPECT_TRUE(line.equal(torch::tensor({{0., 0., 0., 1., 2., 3., 4., 4., 4.}}, torch::kFloat64)));
  line.sum().backward();
  EXPECT_TRUE(table.grad().squeeze(1).equal(torch::tensor({3., 1., 1., 1., 3.}, torch::kFloat64)));
  EXPECT_TRUE(clipped_line(table, 1).equal(torch::tensor({{2.}}, torch::kFloat64)));
}

TEST(T5RelativeLine, LooksUpBucketsAtEveryLength) {
  const Tensor table = torch::randn({8, 3}, torch::kFloat64).requires_grad_();
  T5RelativeLine line(8, 6);
  const T5Buckets buckets(8, 6);
  for (const std::int64_t tokens : {9, 1, 4}) {
    const Tensor values = line(table, tokens);
    for (std::int64_t distance = 1 - tokens; distance < tokens; ++distance) {
      EXPECT_TRUE(values.select(1, distance + tokens - 1).equal(table[buckets.of(distance)]));
    }
  }
  EXPECT_EQ(line(table.to(torch::kFloat32), 4).scalar_type(), torch::kFloat32);
}

}  // namespace
}  // namespace tupelo::relative_bias_test
