#include "model/attention.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <vector>

#include "tests/model/formulas.h"

namespace tupelo {
namespace {

using torch::Tensor;
constexpr std::int64_t kBatch = 3, kHeads = 2, kTokens = 7, kWidth = 4;

Tensor random(std::vector<std::int64_t> shape) {
  return torch::randn(shape, torch::kFloat64).requires_grad_();
}

struct Inputs {
  Tensor query = random({kBatch, kHeads, kTokens, kWidth});
  Tensor key = random({kBatch, kHeads, kTokens, kWidth});
  Tensor value = random({kBatch, kHeads, kTokens, kWidth});
};

AttentionTerms all_terms() {
  AttentionTerms terms;
  terms.scale = 0.37;
  terms.bias = random({kHeads, kTokens, kTokens});
  terms.query_gain = random({kHeads, 1, 1});
  terms.query_offset = random({kHeads, kTokens, kWidth});
  terms.key_offset = random({kHeads, kTokens, kWidth});
  terms.query_extra_gain = random({kHeads, 1, 1});
  terms.query_extra = random({kHeads, kTokens, kWidth});
  terms.key_extra = random({kHeads, kTokens, kWidth});
  return terms;
}

Tensor padding() {
  Tensor mask = torch::ones({kBatch, kTokens}, torch::kBool);
  mask[1].narrow(0, 5, 2).fill_(false);
  mask[2].narrow(0, 1, 6).fill_(false);
  return mask;
}

class Attention : public testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(5); }
};

TEST_F(Attention, EqualsTheFormulaForwardAndBackward) {
  for (const Tensor& mask : {Tensor(), padding()}) {
    for (const bool with_terms : {false, true}) {
      Inputs in;
      AttentionTerms terms;
      terms.scale = 0.5;
      if (with_terms) terms = all_terms();
      std::vector<Tensor> sources = terms.tensors();
      sources.insert(sources.end(), {in.query, in.key, in.value});
      const Tensor ours = attention(in.query, in.key, in.value, terms, mask, 0.0);
      const Tensor plain = plain_attention(in.query, in.key, in.value, terms, mask);
      EXPECT_TRUE(near(ours, plain, 1e-13));
      const Tensor cotangent = torch::randn_like(ours);
      const auto our_gradients = torch::autograd::grad({ours}, sources, {cotangent});
      const auto plain_gradients = torch::autograd::grad({plain}, sources, {cotangent});
      for (std::size_t i = 0; i < sources.size(); ++i) {
        EXPECT_TRUE(near(our_gradients[i], plain_gradients[i], 1e-12)) << "source " << i;
      }
    }
  }
}

TEST_F(Attention, ExtraFeaturesMayBeWiderThanAHeadAndNeedNoGain) {
  Inputs in;
  AttentionTerms terms;
  terms.scale = 0.3;
  terms.query_extra = random({kHeads, kTokens, 9});
  terms.key_extra = random({kHeads, kTokens, 9});
  EXPECT_TRUE(near(attention(in.query, in.key, in.value, terms, padding(), 0.0),
                   plain_attention(in.query, in.key, in.value, terms, padding()), 1e-13));
}

TEST_F(Attention, OnlyTheBiasMayNeedAGradient) {
  Inputs in;
  AttentionTerms terms;
  terms.scale = 0.5;
  terms.bias = random({kHeads, kTokens, kTokens});
  const Tensor result =
      attention(in.query.detach(), in.key.detach(), in.value.detach(), terms, {}, 0.0);
  result.square().sum().backward();
  EXPECT_GT(terms.bias.grad().abs().max().item<double>(), 0.0);
}

TEST_F(Attention, RowsOfTheBiasGradientSumToZero) {
  Inputs in;
  AttentionTerms terms;
  terms.scale = 0.5;
  terms.bias = random({kHeads, kTokens, kTokens});
  attention(in.query, in.key, in.value, terms, padding(), 0.2).square().sum().backward();
  EXPECT_TRUE(near(terms.bias.grad().sum(-1), torch::zeros({kHeads, kTokens}), 1e-14));
}

TEST_F(Attention, SampleWithoutKeysGivesZerosAndNoNaN) {
  Inputs in;
  Tensor mask = padding();
  mask[1].fill_(false);
  AttentionTerms terms = all_terms();
  const Tensor result = attention(in.query, in.key, in.value, terms, mask, 0.0);
  EXPECT_EQ(result[1].abs().max().item<double>(), 0.0);
  result.square().sum().backward();
  EXPECT_EQ(in.query.grad()[1].abs().max().item<double>(), 0.0);
  for (const Tensor& tensor : {in.query, in.key, in.value, terms.bias}) {
    EXPECT_TRUE(tensor.grad().isfinite().all().item<bool>());
  }
}

TEST_F(Attention, MaskedKeysDoNotMatterEvenWithHugeBiases) {
  Inputs in;
  AttentionTerms terms;
  terms.scale = 0.5;
  terms.bias = torch::zeros({kHeads, kTokens, kTokens}, torch::kFloat64);
  Tensor mask = torch::ones({kBatch, kTokens}, torch::kBool);
  mask.narrow(1, 5, 2).fill_(false);
  const Tensor before = attention(in.query, in.key, in.value, terms, mask, 0.0);
  terms.bias.narrow(2, 5, 2).fill_(1e6);
  {
    torch::NoGradGuard no_grad;
    in.key.narrow(2, 5, 2).fill_(1e3);
    in.value.narrow(2, 5, 2).fill_(-1e3);
  }
  EXPECT_TRUE(attention(in.query, in.key, in.value, terms, mask, 0.0).equal(before));
}

// With a value of ones in one feature per key, the result shows the dropped probabilities
// themselves.
TEST_F(Attention, DropoutScalesSurvivorsAndTheGradientUsesTheSameMask) {
  const std::int64_t tokens = 64;
  const Tensor query = torch::zeros({4, kHeads, tokens, tokens}, torch::kFloat64).requires_grad_();
  const Tensor value = torch::eye(tokens, torch::kFloat64)
                           .expand({4, kHeads, tokens, tokens})
                           .clone()
                           .requires_grad_();
  AttentionTerms terms;
  terms.scale = 1.0;
  terms.bias = random({kHeads, tokens, tokens});
  const Tensor kept = attention(query, query, value, terms, {}, 0.25);
  const Tensor probabilities = torch::softmax(terms.bias.detach(), -1).expand_as(kept);
  const Tensor survived = kept.detach().ne(0);
  EXPECT_TRUE(near(kept, probabilities * survived / 0.75, 1e-9));
  EXPECT_NEAR(survived.to(torch::kFloat64).mean().item<double>(), 0.75, 0.01);

  const Tensor cotangent = torch::randn_like(kept);
  kept.backward(cotangent);
  const Tensor leaf = terms.bias.detach().requires_grad_();
  (torch::softmax(leaf, -1) * survived / 0.75 * cotangent).sum().backward();
  EXPECT_TRUE(near(terms.bias.grad(), leaf.grad(), 1e-9));
}

TEST_F(Attention, HalfPrecisionStaysNearDouble) {
  Inputs in;
  AttentionTerms terms = all_terms();
  const Tensor exact = plain_attention(in.query, in.key, in.value, terms, padding());
  std::vector<Tensor> rounded;
  for (const Tensor& tensor : terms.tensors()) {
    rounded.push_back(tensor.detach().to(torch::kBFloat16).to(torch::kFloat32).requires_grad_());
  }
  const AttentionTerms rough = terms.with_tensors(rounded);
  const Tensor query = in.query.detach().to(torch::kBFloat16).requires_grad_();
  const Tensor result = attention(query, in.key.detach().to(torch::kBFloat16),
                                  in.value.detach().to(torch::kBFloat16), rough, padding(), 0.0);
  EXPECT_EQ(result.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(near(result, exact, 0.1));
  result.sum().backward();
  EXPECT_EQ(rough.bias.grad().scalar_type(), torch::kFloat32);
  EXPECT_TRUE(query.grad().isfinite().all().item<bool>());
}

}  // namespace
}  // namespace tupelo
