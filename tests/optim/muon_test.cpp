#include "optim/muon.h"

#include <ATen/ops/linalg_svdvals.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <stdexcept>

#include "optim/newton_schulz.h"
#include "tests/optim/optimizer_run.h"

namespace tupelo::muon_test {
namespace {

torch::Tensor orthogonal_of(const torch::Tensor& matrix) {
  return orthogonalized(matrix, matrix.norm().item<double>());
}

TEST(NewtonSchulz, BringsAllSingularValuesNearOne) {
  torch::manual_seed(5);
  for (const auto& [rows, columns] : {std::pair{40, 40}, {16, 90}, {90, 16}, {1, 30}, {30, 1}}) {
    for (const double size : {1e-3, 1.0, 1e4}) {
      const torch::Tensor matrix = size * torch::randn({rows, columns}, torch::kFloat64);
      const torch::Tensor result = orthogonal_of(matrix);
      ASSERT_EQ(result.sizes(), matrix.sizes());
      const torch::Tensor values = at::linalg_svdvals(result);
      // A square random matrix has singular values so near 0 that five steps do not lift them.
      const double least = rows == columns ? 0.0 : 0.6;
      EXPECT_GT(values.min().item<double>(), least) << rows << " x " << columns;
      EXPECT_LT(values.max().item<double>(), 1.2) << rows << " x " << columns;
    }
  }
}

TEST(NewtonSchulz, KeepsSingularVectorsAndTheOrderOfRows) {
  const torch::Tensor diagonal = torch::diag(torch::tensor({3.0, 0.0, -2.0}, torch::kFloat64));
  const torch::Tensor result = orthogonal_of(diagonal);
  EXPECT_LT((result - torch::diag(result.diag())).abs().max().item<double>(), 1e-15);
  EXPECT_GT(result[0][0].item<double>(), 0.6);
  EXPECT_EQ(result[1][1].item<double>(), 0.0);
  EXPECT_LT(result[2][2].item<double>(), -0.6);
}

TEST(NewtonSchulz, LeavesZeroAtZero) {
  EXPECT_TRUE(torch::equal(orthogonal_of(torch::zeros({3, 5})), torch::zeros({3, 5})));
}

TEST(Muon, ScalesByTheConventionOfItsFlavour) {
  EXPECT_DOUBLE_EQ(muon_scale("keller", 3072, 768), 2.0);
  EXPECT_DOUBLE_EQ(muon_scale("keller", 768, 3072), 1.0);
  EXPECT_DOUBLE_EQ(muon_scale("moonshot", 900, 100), 6.0);
  EXPECT_DOUBLE_EQ(muon_scale("moonshot", 100, 900), 6.0);
  EXPECT_THROW(muon_scale("torch", 1, 1), c10::Error);
}

// Root mean square of the first step on a matrix, relative to the learning rate.
double step_size(const std::string& flavour, std::int64_t rows, std::int64_t columns) {
  torch::manual_seed(6);
  torch::Tensor weight = torch::zeros({rows, columns});
  weight.mutable_grad() = torch::randn({rows, columns});
  OptimizerOptions options;
  options.name = "muon";
  options.flavour = flavour;
  ParameterGroup group{"all", {{"w", weight}}};
  group.hidden_matrices = true;
  make_optimizer(options, {group})->step(1.0, 1);
  return weight.pow(2).mean().sqrt().item<double>();
}

TEST(Muon, MoonshotMakesStepsAsLongAsThoseOfAdamW) {
  for (const auto& [rows, columns] : {std::pair{64, 256}, {256, 64}}) {
    EXPECT_NEAR(step_size("moonshot", rows, columns), 0.2, 0.04);
  }
}

TEST(Muon, LeavesOtherGroupsToAdamWBitForBit) {
  torch::manual_seed(8);
  const torch::Tensor start = torch::randn({9, 4});
  std::vector<torch::Tensor> results;
  for (const char* name : {"muon", "adamw"}) {
    torch::Tensor weight = start.clone();
    OptimizerOptions options;
    options.name = name;
    const auto optimizer = make_optimizer(options, {{"rest", {{"w", weight}}, 0.5, 0.1}});
    for (std::int64_t step = 1; step <= 3; ++step) {
      weight.mutable_grad() = start.cos() * static_cast<double>(step);
      optimizer->step(0.01, step);
    }
    EXPECT_EQ(optimizer->state().size(), 2u);
    results.push_back(weight);
  }
  EXPECT_TRUE(same_bits(results[0], results[1]));
}

TEST(Muon, KeepsOneMomentOfMatrices) {
  OptimizerOptions options;
  options.name = "muon";
  ParameterGroup group{"matrices", {{"w", torch::zeros({2, 3})}}};
  group.hidden_matrices = true;
  const auto optimizer = make_optimizer(options, {group, {"rest", {{"b", torch::zeros({3})}}}});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : optimizer->state()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"exp_avg.w", "exp_avg.b", "exp_avg_sq.b"}));
}

TEST(Muon, RefusesWhatIsNoMatrix) {
  OptimizerOptions options;
  options.name = "muon";
  ParameterGroup group{"matrices", {{"bias", torch::zeros({3})}}};
  group.hidden_matrices = true;
  try {
    make_optimizer(options, {group});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "muon: parameter 'bias' of group 'matrices' is no matrix, its shape is [3]");
  }
}

}  // namespace
}  // namespace tupelo::muon_test
