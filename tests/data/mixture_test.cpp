#include "data/mixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace tupelo::mixture_test {
namespace {

TEST(Mixture, NumbersThePartsSamplesInTurn) {
  const std::vector<double> weights = {5, 1, 2.5, 0.01};
  const Mixture mixture(weights, 7);
  std::vector<std::uint64_t> drawn(mixture.parts());
  for (std::uint64_t block = 0; block < 20; ++block) {
    const std::vector<Mixture::Draw> draws = mixture.block(block);
    ASSERT_EQ(draws.size(), Mixture::kBlock);
    for (std::uint64_t i = 0; i < draws.size(); ++i) {
      ASSERT_LT(draws[i].part, mixture.parts());
      EXPECT_EQ(draws[i].index, drawn[draws[i].part]++);
      if (i % 611 != 0) continue;
      for (std::size_t part = 0; part < mixture.parts(); ++part) {
        EXPECT_EQ(mixture.drawn(part, block * Mixture::kBlock + i + 1), drawn[part]);
      }
    }
    for (std::size_t part = 0; part < mixture.parts(); ++part) {
      const double share =
          weights[part] / 8.51 * static_cast<double>((block + 1) * Mixture::kBlock);
      EXPECT_LT(std::abs(static_cast<double>(drawn[part]) - share), 1.001);
    }
  }
}

TEST(Mixture, KnowsFarSamples) {
  const Mixture mixture({1, 3}, 11);
  const std::uint64_t far = std::uint64_t{1} << 50;
  EXPECT_EQ(mixture.drawn(0, far) + mixture.drawn(1, far), far);
  EXPECT_EQ(mixture.drawn(0, far), far / 4);
  EXPECT_EQ(mixture.block(far / Mixture::kBlock)[0].index +
                mixture.drawn(1 - mixture.block(far / Mixture::kBlock)[0].part, far),
            far);
}

TEST(Mixture, IsMixedFinely) {
  const Mixture mixture({1, 1}, 3);
  for (std::uint64_t first = 0; first < 10 * Mixture::kBlock; first += 512) {
    const std::uint64_t count = mixture.drawn(0, first + 512) - mixture.drawn(0, first);
    EXPECT_GT(count, 256u - 80u);
    EXPECT_LT(count, 256u + 80u);
  }
  int same = 0;
  const std::vector<Mixture::Draw> one = mixture.block(0), other = Mixture({1, 1}, 4).block(0);
  for (std::size_t i = 0; i < one.size(); ++i) same += one[i].part == other[i].part;
  EXPECT_LT(same, 2300);
}

TEST(Mixture, OfOnePartIsThatPart) {
  const Mixture mixture({0.3}, 1);
  EXPECT_EQ(mixture.block(2)[5].index, 2 * Mixture::kBlock + 5);
  EXPECT_EQ(mixture.drawn(0, 77), 77u);
}

TEST(Mixture, RefusesWeightsThatAreNone) {
  EXPECT_THROW(Mixture({}, 1), std::invalid_argument);
  EXPECT_THROW(Mixture({1, 0}, 1), std::invalid_argument);
  EXPECT_THROW(Mixture({1, -1}, 1), std::invalid_argument);
  EXPECT_THROW(Mixture({1, std::nan("")}, 1), std::invalid_argument);
  EXPECT_THROW(Mixture({1, std::numeric_limits<double>::infinity()}, 1), std::invalid_argument);
  EXPECT_THROW(Mixture({10000, 1}, 1), std::invalid_argument);
  EXPECT_NO_THROW(Mixture({2000, 1}, 1));
}

TEST(MixtureWeights, FollowSizesOrWhatIsGiven) {
  using Weights = std::vector<double>;
  EXPECT_EQ(mixture_weights("tokens", {100, 10000}), (Weights{100, 10000}));
  EXPECT_EQ(mixture_weights("tokens^0.5", {100, 10000}), (Weights{10, 100}));
  EXPECT_EQ(mixture_weights("tokens^0", {100, 10000}), (Weights{1, 1}));
  EXPECT_EQ(mixture_weights("0.7,3", {100, 10000}), (Weights{0.7, 3}));
  EXPECT_EQ(mixture_weights("2", {100}), (Weights{2}));
  for (const std::string wrong : {"", "token", "tokens^", "tokens^2", "tokens^-1", "0.7,", "0.7,x",
                                  "0,1", "1,-1", "nan,1", "1;2"}) {
    EXPECT_THROW(check_mixture(wrong), std::invalid_argument) << wrong;
  }
  EXPECT_NO_THROW(check_mixture("1,2,3"));
  EXPECT_THROW(mixture_weights("1,2,3", {100, 10000}), std::invalid_argument);
}

}  // namespace
}  // namespace tupelo::mixture_test
