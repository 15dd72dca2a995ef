#include "optim/weight_average.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>

#include "tests/optim/optimizer_run.h"

namespace tupelo::weight_average_test {
namespace {

std::vector<NamedParameter> draw() {
  torch::manual_seed(4);
  return {{"a", torch::randn({7, 3}).requires_grad_()}, {"b", torch::randn({5}).requires_grad_()}};
}

void move(const std::vector<NamedParameter>& parameters, std::int64_t step) {
  torch::manual_seed(static_cast<std::uint64_t>(100 + step));
  for (const NamedParameter& parameter : parameters) {
    torch::Tensor weight = parameter.tensor.detach();
    weight.add_(torch::randn_like(weight), 0.1);
  }
}

TEST(WeightAverage, FollowsItsFormula) {
  const std::vector<NamedParameter> parameters = draw();
  WeightAverage average(parameters, 0.5);
  torch::Tensor expected = parameters[0].tensor.detach().to(torch::kFloat64);
  for (int n = 0; n < 30; ++n) {
    move(parameters, n);
    average.update();
    const double decay = std::min(0.5, (1.0 + n) / (10.0 + n));
    expected = decay * expected + (1 - decay) * parameters[0].tensor.detach().to(torch::kFloat64);
    EXPECT_LT((average.tensors()[0].second - expected).abs().max().item<double>(), 1e-6) << n;
  }
  EXPECT_EQ(average.updates(), 30);
  EXPECT_EQ(average.tensors()[1].first, "b");
}

TEST(WeightAverage, ResumesBitForBit) {
  const std::vector<NamedParameter> parameters = draw();
  WeightAverage straight(parameters, 0.9);
  WeightAverage first(parameters, 0.9);
  WeightAverage second(parameters, 0.9);
  for (int n = 0; n < 10; ++n) {
    move(parameters, n);
    straight.update();
    if (n == 5) {
      const torch::NoGradGuard no_gradients;
      for (std::size_t i = 0; i < 2; ++i) {
        second.tensors()[i].second.copy_(first.tensors()[i].second);
      }
      second.set_updates(first.updates());
    }
    (n < 5 ? first : second).update();
  }
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(same_bits(straight.tensors()[i].second, second.tensors()[i].second));
    EXPECT_FALSE(same_bits(straight.tensors()[i].second, first.tensors()[i].second));
  }
}

TEST(WeightAverage, TakesThePlaceOfTheWeightsAndLeavesIt) {
  const std::vector<NamedParameter> parameters = draw();
  WeightAverage average(parameters, 0.9);
  move(parameters, 1);
  average.update();
  const torch::Tensor weight = parameters[0].tensor.detach().clone();
  const torch::Tensor mean = average.tensors()[0].second.clone();
  ASSERT_FALSE(torch::equal(weight, mean));
  average.swap();
  EXPECT_TRUE(same_bits(parameters[0].tensor, mean));
  EXPECT_TRUE(same_bits(average.tensors()[0].second, weight));
  average.swap();
  EXPECT_TRUE(same_bits(parameters[0].tensor, weight));
  EXPECT_TRUE(same_bits(average.tensors()[0].second, mean));
}

TEST(WeightAverage, RestartsAtTheWeights) {
  const std::vector<NamedParameter> parameters = draw();
  WeightAverage average(parameters, 0.9);
  move(parameters, 1);
  average.update();
  average.restart();
  EXPECT_EQ(average.updates(), 0);
  EXPECT_TRUE(same_bits(average.tensors()[0].second, parameters[0].tensor));
}

TEST(WeightAverage, ADecayOutOfRangeIsABrokenContract) {
  for (const double decay : {0.0, 1.0, -0.1}) EXPECT_THROW(WeightAverage({}, decay), c10::Error);
}

}  // namespace
}  // namespace tupelo::weight_average_test
