#include "optim/lamb.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <map>
#include <stdexcept>

#include "tests/optim/optimizer_run.h"
#include "tests/support/refvec.h"

namespace tupelo::lamb_test {
namespace {

double length_of(const torch::Tensor& tensor) {
  return tensor.detach().to(torch::kFloat64).norm().item<double>();
}

// What update `t` (from 1) adds to `weight` before scaling, from the moments after that update.
torch::Tensor direction(const Refvec& vectors, bool corrects_bias, std::int64_t t,
                        const torch::Tensor& weight, double weight_decay,
                        const std::map<std::string, torch::Tensor>& state,
                        const std::string& name) {
  const auto correction = [&](const std::string& beta) {
    return corrects_bias ? 1 - std::pow(vectors.number(beta), static_cast<double>(t)) : 1.0;
  };
  const torch::Tensor first = state.at("exp_avg." + name) / correction("beta1");
  const torch::Tensor second = state.at("exp_avg_sq." + name) / correction("beta2");
  return first / (second.sqrt() + vectors.number("eps")) + weight_decay * weight;
}

std::vector<torch::Tensor> copies(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> copies;
  for (const torch::Tensor& tensor : tensors) copies.push_back(tensor.detach().clone());
  return copies;
}

class LambVectors : public testing::TestWithParam<std::tuple<std::string, torch::ScalarType>> {
 protected:
  std::string flavour() const { return std::get<0>(GetParam()); }
  double relative() const { return std::get<1>(GetParam()) == torch::kFloat64 ? 1e-12 : 1e-6; }

  // Parameter i after update n (from 0), and the trust ratio of that update.
  void check(OptimizerRun& run, std::int64_t n, std::size_t i, const torch::Tensor& before) {
    const std::string out = "out." + flavour() + ".";
    const std::string index = numbered(numbered(".", n) + ".", i);
    EXPECT_TRUE(vectors_.compare_to_scale(out + "param" + index, run.parameters()[i], relative()));
    const std::int64_t group =
        vectors_.tensor("in.group")[static_cast<std::int64_t>(i)].item<std::int64_t>();
    const double decay = vectors_.tensor("in.weight_decay")[group].item<double>();
    const auto state = run.optimizer().state();
    const torch::Tensor update = direction(vectors_, flavour() == "corrected", n + 1, before, decay,
                                           {state.begin(), state.end()}, std::to_string(i));
    const double trust =
        trust_ratio(lamb_flavour(flavour()), decay, length_of(before), length_of(update));
    EXPECT_TRUE(vectors_.compare_each(out + "trust" + index,
                                      torch::full({1}, trust, torch::kFloat64), relative()));
  }

  const Refvec vectors_ = Refvec::load("lamb", std::get<1>(GetParam()));
};

TEST_P(LambVectors, EveryUpdateAndTrustRatioMatches) {
  OptimizerRun run(vectors_, flavour());
  const std::int64_t steps = vectors_.integer("steps");
  for (std::int64_t n = 0; n < steps; ++n) {
    const std::vector<torch::Tensor> before = copies(run.parameters());
    run.update(n);
    for (std::size_t i = 0; i < before.size(); ++i) check(run, n, i, before[i]);
  }
  EXPECT_EQ(vectors_.keys("out." + flavour() + ".").size(),
            2 * static_cast<std::size_t>(steps) * run.parameters().size());
}

INSTANTIATE_TEST_SUITE_P(FlavoursAndPrecisions, LambVectors,
                         testing::Combine(testing::ValuesIn(lamb_flavours()),
                                          testing::Values(torch::kFloat64, torch::kFloat32)),
                         [](const auto& param) {
                           return std::get<0>(param.param) + "_" +
                                  toString(std::get<1>(param.param));
                         });

TEST(TrustRatio, CorrectedAdaptsDecayedGroupsAlone) {
  const LambFlavour& corrected = lamb_flavour("corrected");
  EXPECT_EQ(trust_ratio(corrected, 0.1, 6.0, 4.0), 1.5);
  EXPECT_EQ(trust_ratio(corrected, 0.0, 6.0, 4.0), 1.0);
  EXPECT_EQ(trust_ratio(corrected, 0.1, 60.0, 4.0), 15.0);
}

TEST(TrustRatio, FairseqAdaptsAllAndBoundsTheWeight) {
  const LambFlavour& fairseq = lamb_flavour("fairseq");
  EXPECT_EQ(trust_ratio(fairseq, 0.1, 6.0, 4.0), 1.5);
  EXPECT_EQ(trust_ratio(fairseq, 0.0, 6.0, 4.0), 1.5);
  EXPECT_EQ(trust_ratio(fairseq, 0.1, 60.0, 4.0), 2.5);
}

TEST(TrustRatio, IsOneWhereANormIsZero) {
  for (const std::string& flavour : lamb_flavours()) {
    EXPECT_EQ(trust_ratio(lamb_flavour(flavour), 0.1, 0.0, 4.0), 1.0) << flavour;
    EXPECT_EQ(trust_ratio(lamb_flavour(flavour), 0.1, 6.0, 0.0), 1.0) << flavour;
  }
}

// The length of the step of a decayed tensor of norm `weight_norm`, at rate 1.
double step_length(const std::string& flavour, double weight_norm, torch::ScalarType dtype) {
  torch::Tensor weight = torch::full({4}, weight_norm / 2, dtype);
  weight.mutable_grad() = torch::tensor({1.0, -2.0, 3.0, -4.0}).to(dtype);
  const torch::Tensor before = weight.clone();
  OptimizerOptions options;
  options.name = "lamb";
  options.flavour = flavour;
  make_optimizer(options, {{"all", {{"w", weight}}, 1.0, 0.1}})->step(1.0, 1);
  return length_of(weight - before);
}

TEST(Lamb, AStepIsAsLongAsItsTensor) {
  EXPECT_NEAR(step_length("corrected", 3.0, torch::kFloat64), 3.0, 1e-12);
  EXPECT_NEAR(step_length("fairseq", 3.0, torch::kFloat64), 3.0, 1e-12);
  EXPECT_NEAR(step_length("corrected", 40.0, torch::kFloat64), 40.0, 1e-11);
  EXPECT_NEAR(step_length("fairseq", 40.0, torch::kFloat64), 10.0, 1e-11);
}

// Squares of these weights are beyond float32.
TEST(Lamb, NormsOutgrowFloat32) {
  EXPECT_NEAR(step_length("corrected", 1e25, torch::kFloat32), 1e25, 1e19);
}

TEST(Lamb, UnknownFlavoursAreABrokenContract) {
  EXPECT_THROW(lamb_flavour("torch"), std::out_of_range);
}

}  // namespace
}  // namespace tupelo::lamb_test
