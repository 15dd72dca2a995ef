// The calls of LibTorch's attention, on the CPU: the same answers, whatever kernel serves them.
#include "model/fused_attention.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <vector>

#include "tests/model/formulas.h"

namespace tupelo::fused_attention_test {
namespace {

using torch::Tensor;
constexpr std::int64_t kBatch = 5, kHeads = 2, kTokens = 7, kWidth = 8;
constexpr double kScale = 0.4;

class FusedAttention : public testing::Test {
 protected:
  FusedAttention() {
    torch::manual_seed(5);
    const auto heads = [] {
      return torch::randn({kBatch, kHeads, kTokens, kWidth}, torch::kFloat64).requires_grad_();
    };
    operands.query = heads();
    operands.key = heads();
    operands.value = heads();
  }

  void add_bias() {
    operands.bias = torch::randn({kHeads, kTokens, kTokens}, torch::kFloat64).requires_grad_();
  }

  void add_padding() {
    operands.admissible_keys = torch::ones({kBatch, kTokens}, torch::kBool);
    operands.admissible_keys[1].narrow(0, 4, 3).fill_(false);
  }

  void expect_the_formula(const Tensor& result) {
    AttentionTerms terms;
    terms.scale = kScale;
    terms.bias = operands.bias;
    const Tensor plain = plain_attention(operands.query, operands.key, operands.value, terms,
                                         operands.admissible_keys);
    EXPECT_TRUE(near(result, plain, 1e-13));
    std::vector<Tensor> sources = {operands.query, operands.key, operands.value};
    if (operands.bias.defined()) sources.push_back(operands.bias);
    const Tensor cotangent = torch::randn_like(plain);
    const auto gradients = torch::autograd::grad({result}, sources, {cotangent});
    const auto expected = torch::autograd::grad({plain}, sources, {cotangent});
    for (std::size_t i = 0; i < sources.size(); ++i) {
      EXPECT_TRUE(near(gradients[i], expected[i], 1e-12)) << "source " << i;
    }
  }

  AttentionOperands operands;
};

TEST_F(FusedAttention, Plain) { expect_the_formula(fused_attention(operands, kScale, 0.0)); }

TEST_F(FusedAttention, BiasInBlocksOfAnySize) {
  add_bias();
  constexpr std::int64_t kSample = kHeads * kTokens * kTokens;
  for (const std::int64_t block : {std::int64_t{1}, kSample, 2 * kSample + 1, 100 * kSample}) {
    expect_the_formula(fused_attention_with_bias(operands, kScale, 0.0, block));
  }
}

TEST_F(FusedAttention, OnlyTheBiasMayNeedAGradient) {
  add_bias();
  for (Tensor* tensor : {&operands.query, &operands.key, &operands.value})
    *tensor = tensor->detach();
  fused_attention_with_bias(operands, kScale, 0.0).square().sum().backward();
  EXPECT_GT(operands.bias.grad().abs().max().item<double>(), 0.0);
}

TEST_F(FusedAttention, Padding) {
  add_padding();
  expect_the_formula(fused_attention_with_padding(operands, kScale, 0.0));
}

TEST_F(FusedAttention, SampleWithoutKeysGivesZeros) {
  add_padding();
  operands.admissible_keys[2].fill_(false);
  const Tensor result = fused_attention_with_padding(operands, kScale, 0.0);
  EXPECT_EQ(result[2].abs().max().item<double>(), 0.0);
  result.square().sum().backward();
  EXPECT_TRUE(operands.query.grad().isfinite().all().item<bool>());
}

}  // namespace
}  // namespace tupelo::fused_attention_test
