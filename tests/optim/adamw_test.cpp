#include "optim/adamw.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/optim/optimizer_run.h"
#include "tests/support/refvec.h"

namespace tupelo::adamw_test {
namespace {

class AdamWVectors : public testing::TestWithParam<std::tuple<std::string, torch::ScalarType>> {};

TEST_P(AdamWVectors, EveryUpdateMatches) {
  const auto& [flavour, precision] = GetParam();
  const double relative = precision == torch::kFloat64 ? 1e-12 : 1e-6;
  const Refvec vectors = Refvec::load("adamw", precision);
  const std::string out = "out." + flavour + ".";
  OptimizerRun run(vectors, flavour);
  for (std::int64_t n = 0; n < vectors.integer("steps"); ++n) {
    const torch::Tensor norm = torch::full({1}, run.update(n), torch::kFloat64);
    EXPECT_TRUE(vectors.compare_each(numbered(out + "norm.", n), norm, relative));
    for (std::size_t i = 0; i < run.parameters().size(); ++i) {
      const std::string key = numbered(numbered(out + "param.", n) + ".", i);
      EXPECT_TRUE(vectors.compare_to_scale(key, run.parameters()[i], relative));
    }
  }
  for (const auto& [name, tensor] : run.optimizer().state()) {
    EXPECT_TRUE(vectors.compare_to_scale(out + name, tensor, relative));
  }
}

INSTANTIATE_TEST_SUITE_P(FlavoursAndPrecisions, AdamWVectors,
                         testing::Combine(testing::Values("torch", "fairseq"),
                                          testing::Values(torch::kFloat64, torch::kFloat32)),
                         [](const auto& param) {
                           return std::get<0>(param.param) + "_" +
                                  toString(std::get<1>(param.param));
                         });

// A parameter cut into slices, as when ranks share the optimizer's work.
TEST(AdamW, SlicesGiveTheBitsOfTheWhole) {
  torch::manual_seed(3);
  const torch::Tensor start = torch::randn({1003});
  const torch::Tensor gradient = torch::randn({1003});
  torch::Tensor whole = start.clone();
  whole.mutable_grad() = gradient;
  make_optimizer({}, {{"all", {{"w", whole}}, 1.0, 0.1}})->step(0.01, 1);
  torch::Tensor sliced = start.clone();
  std::vector<NamedParameter> slices;
  for (const auto& [begin, end] : {std::pair{0, 7}, {7, 338}, {338, 1003}}) {
    torch::Tensor slice = sliced.slice(0, begin, end).detach();
    slice.mutable_grad() = gradient.slice(0, begin, end);
    slices.push_back({std::to_string(begin), slice});
  }
  make_optimizer({}, {{"all", slices, 1.0, 0.1}})->step(0.01, 1);
  EXPECT_TRUE(same_bits(whole, sliced));
}

TEST(AdamW, DecaysOnlyWhatItsGroupSays) {
  torch::Tensor decayed = torch::ones({4});
  torch::Tensor kept = torch::ones({4});
  decayed.mutable_grad() = torch::zeros({4});
  kept.mutable_grad() = torch::zeros({4});
  const auto optimizer =
      make_optimizer({}, {{"decayed", {{"a", decayed}}, 2.0, 0.25}, {"undecayed", {{"b", kept}}}});
  optimizer->step(0.5, 1);
  EXPECT_TRUE(torch::equal(decayed, torch::full({4}, 0.75)));
  EXPECT_TRUE(torch::equal(kept, torch::ones({4})));
}

}  // namespace
}  // namespace tupelo::adamw_test
