#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>

#include "optim/optimizer.h"

namespace tupelo::gradient_clipping_test {
namespace {

std::vector<torch::Tensor> with_gradients(const std::vector<torch::Tensor>& gradients) {
  std::vector<torch::Tensor> parameters;
  for (const torch::Tensor& gradient : gradients) {
    parameters.push_back(torch::zeros_like(gradient));
    parameters.back().mutable_grad() = gradient.clone();
  }
  return parameters;
}

TEST(ClipGlobalNorm, ScalesAllGradientsTogether) {
  const auto parameters = with_gradients({torch::tensor({3.0, 0.0}), torch::tensor({{4.0}})});
  EXPECT_DOUBLE_EQ(clip_global_norm(parameters, 2.5), 5.0);
  EXPECT_NEAR(parameters[0].grad()[0].item<double>(), 1.5, 1e-6);
  EXPECT_NEAR(parameters[1].grad()[0][0].item<double>(), 2.0, 1e-6);
}

TEST(ClipGlobalNorm, LeavesSmallGradientsAlone) {
  const auto parameters = with_gradients({torch::tensor({3.0f, 4.0f})});
  EXPECT_DOUBLE_EQ(clip_global_norm(parameters, 5.1), 5.0);
  EXPECT_TRUE(torch::equal(parameters[0].grad(), torch::tensor({3.0f, 4.0f})));
}

TEST(ClipGlobalNorm, OnlyMeasuresWithoutALimit) {
  for (const double limit : {0.0, -1.0}) {
    const auto parameters = with_gradients({torch::tensor({300.0f, 400.0f})});
    EXPECT_DOUBLE_EQ(clip_global_norm(parameters, limit), 500.0);
    EXPECT_TRUE(torch::equal(parameters[0].grad(), torch::tensor({300.0f, 400.0f})));
  }
}

TEST(ClipGlobalNorm, IsZeroWithoutGradients) {
  EXPECT_EQ(clip_global_norm({}, 1.0), 0.0);
  EXPECT_EQ(clip_global_norm({torch::ones({3})}, 1.0), 0.0);
  EXPECT_EQ(clip_global_norm(with_gradients({torch::zeros({3}), torch::zeros({0})}), 1.0), 0.0);
}

TEST(ClipGlobalNorm, CountsInDoubleWhatFloat32WouldLose) {
  // 2^24 ones beside a 1: a float32 sum of squares stops growing at 2^24.
  const auto parameters = with_gradients({torch::ones({1 << 24}), torch::ones({3})});
  EXPECT_DOUBLE_EQ(clip_global_norm(parameters, 0.0), std::sqrt(16777219.0));
  // Squares that float32 cannot represent.
  EXPECT_NEAR(clip_global_norm(with_gradients({torch::tensor({3e30f, 4e30f})}), 0.0), 5e30, 1e23);
}

TEST(ClipGlobalNorm, LeavesGradientsAsTheyAreWhenTheNormIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const auto parameters = with_gradients({torch::tensor({bad}), torch::tensor({7.0f})});
    EXPECT_FALSE(std::isfinite(clip_global_norm(parameters, 1.0)));
    EXPECT_EQ(parameters[1].grad().item<float>(), 7.0f);
  }
}

TEST(ClipGlobalNorm, DoesNotDependOnHowGradientsAreStored) {
  torch::manual_seed(1);
  const torch::Tensor bucket = torch::randn({1 + 97 * 31 + 13});
  const std::vector<torch::Tensor> apart = {bucket.slice(0, 1, 1 + 97 * 31).view({97, 31}).clone(),
                                            bucket.slice(0, 1 + 97 * 31).clone()};
  std::vector<torch::Tensor> views = {torch::zeros({97, 31}), torch::zeros({13})};
  views[0].mutable_grad() = bucket.slice(0, 1, 1 + 97 * 31).view({97, 31});
  views[1].mutable_grad() = bucket.slice(0, 1 + 97 * 31);
  EXPECT_EQ(clip_global_norm(views, 0.0), clip_global_norm(with_gradients(apart), 0.0));
}

TEST(ClipGlobalNorm, DoesNotDependOnTheNumberOfThreads) {
  torch::manual_seed(2);
  const auto parameters = with_gradients({torch::randn({1000003}), torch::randn({70001})});
  const int before = torch::get_num_threads();
  std::vector<double> norms;
  for (const int threads : {1, 2, 5}) {
    torch::set_num_threads(threads);
    norms.push_back(clip_global_norm(parameters, 0.0));
  }
  torch::set_num_threads(before);
  EXPECT_EQ(norms[0], norms[1]);
  EXPECT_EQ(norms[0], norms[2]);
  const double exact = torch::cat({parameters[0].grad(), parameters[1].grad()})
                           .to(torch::kFloat64)
                           .norm()
                           .item<double>();
  EXPECT_NEAR(norms[0] / exact, 1.0, 1e-13);
}

TEST(ClipGlobalNorm, TakesMixedDtypesAndViews) {
  const torch::Tensor base = torch::arange(6, torch::kFloat32).view({2, 3});
  EXPECT_DOUBLE_EQ(clip_global_norm(with_gradients({base.to(torch::kBFloat16), base}), 0.0),
                   std::sqrt(110.0));
  EXPECT_DOUBLE_EQ(clip_global_norm(with_gradients({base.to(torch::kFloat64), base}), 0.0),
                   std::sqrt(110.0));
  torch::Tensor parameter = torch::zeros({3});
  parameter.mutable_grad() = base.select(0, 1);
  torch::Tensor column = torch::zeros({2});
  column.mutable_grad() = base.select(1, 2);
  EXPECT_DOUBLE_EQ(clip_global_norm({parameter, column}, 1e9), std::sqrt(50.0 + 29.0));
}

}  // namespace
}  // namespace tupelo::gradient_clipping_test
