#include "model/dropout.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

namespace tupelo::dropout_test {
namespace {

using torch::Tensor;

TEST(Dropout, IsTheIdentityAtZero) {
  const Tensor input = torch::randn({5});
  EXPECT_TRUE(dropout(input, 0.0).is_same(input));
}

TEST(Dropout, KeepsTheMeanAndTheRate) {
  torch::manual_seed(1);
  const Tensor kept = dropout(torch::ones({1000, 1000}, torch::kFloat64), 0.1);
  EXPECT_NEAR(kept.ne(0).to(torch::kFloat64).mean().item<double>(), 0.9, 0.001);
  EXPECT_NEAR(kept.max().item<double>(), 1.0 / 0.9, 1e-9);
  // Neither rows nor columns repeat a pattern.
  EXPECT_LT((kept.ne(0).to(torch::kFloat64).mean(0) - 0.9).abs().max().item<double>(), 0.06);
  EXPECT_LT((kept.ne(0).to(torch::kFloat64).mean(1) - 0.9).abs().max().item<double>(), 0.06);
}

TEST(Dropout, NeighbouringElementsAndDrawsAreIndependent) {
  torch::manual_seed(2);
  const Tensor ones = torch::ones({1 << 20}, torch::kFloat64);
  const auto centred = [&] { return dropout(ones, 0.5).ne(0).to(torch::kFloat64) - 0.5; };
  const Tensor first = centred(), second = centred();
  EXPECT_NEAR((first * second).mean().item<double>() * 4, 0.0, 0.005);
  for (const std::int64_t lag : {1, 2, 3, 64, 768}) {
    const std::int64_t rest = first.numel() - lag;
    EXPECT_NEAR((first.narrow(0, 0, rest) * first.narrow(0, lag, rest)).mean().item<double>() * 4,
                0.0, 0.005);
    EXPECT_NEAR((first.narrow(0, 0, rest) * second.narrow(0, lag, rest)).mean().item<double>() * 4,
                0.0, 0.005);
  }
}

TEST(Dropout, BackwardUsesTheSameMask) {
  const Tensor input = torch::randn({333}).requires_grad_();
  const Tensor kept = dropout(input, 0.3);
  kept.sum().backward();
  EXPECT_TRUE(kept.equal(input * input.grad()));
}

TEST(Dropout, FollowsTheDefaultGenerator) {
  const Tensor input = torch::randn({1000});
  torch::manual_seed(7);
  const Tensor first = dropout(input, 0.3), second = dropout(input, 0.3);
  torch::manual_seed(7);
  EXPECT_TRUE(dropout(input, 0.3).equal(first));
  EXPECT_FALSE(first.equal(second));
}

TEST(Dropout, DoesNotDependOnThreads) {
  const DropoutMask mask{0x123456789abcdefULL, 0.2};
  const Tensor input = torch::randn({100003});
  Tensor one = torch::empty_like(input), two = torch::empty_like(input);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  mask.apply(input, one);
  at::set_num_threads(3);
  mask.apply(input, two);
  at::set_num_threads(threads);
  EXPECT_TRUE(one.equal(two));
}

TEST(Dropout, SamePatternInEveryPrecision) {
  const DropoutMask mask{42, 0.4};
  const Tensor input = torch::rand({2000}) + 1.0;
  Tensor exact = torch::empty_like(input);
  mask.apply(input, exact);
  for (const auto type : {torch::kFloat64, torch::kBFloat16, torch::kHalf}) {
    Tensor other = torch::empty({2000}, type);
    mask.apply(input.to(type), other);
    EXPECT_TRUE(other.ne(0).equal(exact.ne(0)));
  }
}

}  // namespace
}  // namespace tupelo::dropout_test
