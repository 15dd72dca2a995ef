#include "data/mixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace tupelo {
namespace {

TEST(Mixture, NumbersThePartsSamplesInTurnWithinBlocks) {
  const Mixture mixture({5, 1, 2.5, 0.01}, 7);
  std::vector<std::vector<bool>> seen(mixture.parts());
  constexpr std::uint64_t kBlocks = 20;
  for (std::uint64_t sample = 0; sample < kBlocks * Mixture::kBlock; ++sample) {
    const Mixture::Draw draw = mixture.draw(sample);
    ASSERT_LT(draw.part, mixture.parts());
    std::vector<bool>& of_part = seen[draw.part];
    if (draw.index >= of_part.size()) of_part.resize(draw.index + 1);
    EXPECT_FALSE(of_part[draw.index]) << "index drawn twice";
    of_part[draw.index] = true;
    if ((sample + 1) % Mixture::kBlock != 0) continue;
    // At the end of a block nothing is missing, and the shares are those of the weights.
    const std::vector<double> weights = {5, 1, 2.5, 0.01};
    for (std::size_t part = 0; part < mixture.parts(); ++part) {
      for (const bool drawn : seen[part]) EXPECT_TRUE(drawn);
      const double share = weights[part] / 8.51 * static_cast<double>(sample + 1);
      EXPECT_LT(std::abs(static_cast<double>(seen[part].size()) - share), 1.001);
      EXPECT_EQ(mixture.drawn(part, sample + 1), seen[part].size());
    }
  }
}

TEST(Mixture, CountsWhatWasDrawnAtAnyPlace) {
  const Mixture mixture({1, 3}, 11);
  std::uint64_t counts[2] = {0, 0};
  for (std::uint64_t sample = 0; sample < 9000; ++sample) {
    for (std::size_t part = 0; part < 2 && sample % 97 == 0; ++part) {
      EXPECT_EQ(mixture.drawn(part, sample), counts[part]);
    }
    ++counts[mixture.draw(sample).part];
  }
  const std::uint64_t far = std::uint64_t{1} << 50;
  EXPECT_EQ(mixture.drawn(0, far) + mixture.drawn(1, far), far);
  EXPECT_EQ(mixture.drawn(0, far), far / 4);
}

TEST(Mixture, IsMixedFinely) {
  const Mixture mixture({1, 1}, 3);
  for (std::uint64_t first = 0; first < 10 * Mixture::kBlock; first += 512) {
    const std::uint64_t count = mixture.drawn(0, first + 512) - mixture.drawn(0, first);
    EXPECT_GT(count, 256u - 80u);
    EXPECT_LT(count, 256u + 80u);
  }

  int same = 0;
  const Mixture other({1, 1}, 4);
  for (std::uint64_t sample = 0; sample < 1000; ++sample) {
    same += mixture.draw(sample).part == other.draw(sample).part;
  }
  EXPECT_LT(same, 600);
}

TEST(Mixture, OfOnePartIsThatPart) {
  const Mixture mixture({0.3}, 1);
  EXPECT_EQ(mixture.draw(123456789).index, 123456789u);
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

TEST(MixtureBySize, FollowsTheExponent) {
  EXPECT_EQ(mixture_by_size({100, 10000}, 1.0), (std::vector<double>{100, 10000}));
  EXPECT_EQ(mixture_by_size({100, 10000}, 0.5), (std::vector<double>{10, 100}));
  EXPECT_EQ(mixture_by_size({100, 10000}, 0.0), (std::vector<double>{1, 1}));
}

}  // namespace
}  // namespace tupelo
