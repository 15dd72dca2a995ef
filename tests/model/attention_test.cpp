#include "model/attention.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <limits>
#include <vector>

#include "tests/model/formulas.h"

namespace tupelo::attention_test {
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

AttentionTerms product_terms() {
  AttentionTerms terms;
  terms.scale = 0.37;
  terms.bias = random({kHeads, kTokens, kTokens});
  terms.query_gain = random({kHeads, 1, 1});
  terms.query_offset = random({kHeads, kTokens, kWidth});
  terms.key_offset = random({kHeads, kTokens, kWidth});
  terms.value_offset = random({kHeads, kTokens, kWidth});
  terms.query_extra_gain = random({kHeads, 1, 1});
  terms.query_extra = random({kHeads, kTokens, kWidth});
  terms.key_extra = random({kHeads, kTokens, kWidth});
  return terms;
}

// Tables that reach `reach` tokens far, of one head or of each.
AttentionTerms distance_terms(std::int64_t reach, std::int64_t table_heads) {
  AttentionTerms terms;
  terms.scale = 0.41;
  terms.query_offset = random({kHeads, 1, kWidth});
  terms.relative_query_offset = random({kHeads, 1, kWidth});
  terms.relative_key = random({table_heads, 2 * reach + 1, kWidth});
  terms.relative_query = random({table_heads, 2 * reach + 1, kWidth});
  terms.relative_value = random({table_heads, 2 * reach + 1, kWidth});
  return terms;
}

AttentionTerms rotated_terms(RotationLayout layout) {
  AttentionTerms terms = product_terms();
  const Tensor angles = torch::randn({kTokens, kWidth / 2}, torch::kFloat64);
  terms.rotation_cos = angles.cos();
  terms.rotation_sin = angles.sin();
  terms.rotation_layout = layout;
  terms.rotate_values = layout == RotationLayout::kHalf;
  return terms;
}

AttentionTerms phase_terms(RotationLayout layout, bool mapped) {
  AttentionTerms terms;
  terms.scale = 0.41;
  const std::int64_t width = mapped ? 6 : kWidth;
  const Tensor angles = torch::randn({kTokens, width / 2}, torch::kFloat64);
  terms.phase_cos = angles.cos();
  terms.phase_sin = angles.sin();
  terms.phase_layout = layout;
  terms.phase_key = torch::randn({kTokens, width}, torch::kFloat64);
  if (mapped) {
    terms.phase_map = random({kHeads, kWidth, width});
    terms.relative_query_offset = random({kHeads, 1, kWidth});
  } else {
    terms.phase_value = torch::randn({kTokens, width}, torch::kFloat64);
  }
  return terms;
}

std::vector<AttentionTerms> kinds_of_terms() {
  AttentionTerms plain;
  plain.scale = 0.5;
  AttentionTerms tempered = product_terms(), tempered_distances = distance_terms(2, kHeads);
  for (AttentionTerms* terms : {&tempered, &tempered_distances}) {
    terms->temperature_length = 5;
  }
  tempered.temperature = LengthTemperature::kAtLeastOne;
  tempered_distances.temperature = LengthTemperature::kPlain;
  return {plain,
          product_terms(),
          distance_terms(kTokens - 1, kHeads),
          distance_terms(3, 1),
          distance_terms(kTokens + 2, kHeads),
          distance_terms(0, kHeads),
          rotated_terms(RotationLayout::kInterleaved),
          rotated_terms(RotationLayout::kHalf),
          phase_terms(RotationLayout::kInterleaved, true),
          phase_terms(RotationLayout::kHalf, false),
          tempered,
          tempered_distances};
}

std::vector<Tensor> trained(const AttentionTerms& terms) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : terms.tensors()) {
    if (tensor.requires_grad()) result.push_back(tensor);
  }
  return result;
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
    for (const AttentionTerms& terms : kinds_of_terms()) {
      Inputs in;
      std::vector<Tensor> sources = trained(terms);
      sources.insert(sources.end(), {in.query, in.key, in.value});
      const Tensor ours = attention(in.query, in.key, in.value, terms, mask, 0.0);
      const Tensor plain = plain_attention(in.query, in.key, in.value, terms, mask);
      EXPECT_TRUE(near(ours, plain, 1e-13));
      EXPECT_TRUE(near(attention_scores(in.query, in.key, terms, mask),
                       plain_scores(in.query, in.key, terms, mask), 1e-13));
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
  AttentionTerms terms = product_terms();
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
  AttentionTerms terms = product_terms();
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

TEST_F(Attention, QueriesWhoseKeysAreAllForbiddenGiveZeros) {
  Inputs in;
  AttentionTerms terms;
  terms.scale = 0.5;
  terms.bias_blocks = true;
  // Head 0 sees keys at or before the query, head 1 those behind it: its last query sees none.
  const Tensor place = torch::arange(kTokens, torch::kInt64);
  const Tensor behind = place.unsqueeze(0).gt(place.unsqueeze(1));  // [T,T]
  const double blocked = -std::numeric_limits<double>::infinity();
  terms.bias = torch::zeros({kHeads, kTokens, kTokens}, torch::kFloat64);
  terms.bias[0].masked_fill_(behind, blocked);
  terms.bias[1].masked_fill_(behind.logical_not(), blocked);
  const Tensor result = attention(in.query, in.key, in.value, terms, {}, 0.0);
  EXPECT_EQ(result.select(1, 1).select(1, kTokens - 1).abs().max().item<double>(), 0.0);
  EXPECT_TRUE(near(result.select(1, 0).select(1, 0), in.value.select(1, 0).select(1, 0), 1e-15));
  result.square().sum().backward();
  for (const Tensor& tensor : {in.query, in.key, in.value}) {
    EXPECT_TRUE(tensor.grad().isfinite().all().item<bool>());
  }
}

TEST_F(Attention, DistancesInBlocksOfTheBatchEqualSamplesAlone) {
  constexpr std::int64_t tokens = 700, batch = 20;  // more than one block
  AttentionTerms terms = distance_terms(9, kHeads);
  const auto heads = [&] {
    return torch::randn({batch, kHeads, tokens, kWidth}, torch::kFloat64).requires_grad_();
  };
  const Tensor query = heads(), key = heads(), value = heads();
  const auto run = [&](std::int64_t first, std::int64_t count) {
    return attention(query.narrow(0, first, count), key.narrow(0, first, count),
                     value.narrow(0, first, count), terms, {}, 0.0);
  };
  const Tensor cotangent = torch::randn_like(query);
  const auto sources = trained(terms);
  const Tensor together = run(0, batch);
  const auto gradients = torch::autograd::grad({together}, sources, {cotangent});
  std::vector<Tensor> sums(sources.size());
  for (std::int64_t sample = 0; sample < batch; ++sample) {
    const Tensor alone = run(sample, 1);
    EXPECT_TRUE(near(together.narrow(0, sample, 1), alone, 1e-13));
    const auto part = torch::autograd::grad({alone}, sources, {cotangent.narrow(0, sample, 1)});
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] = sums[i].defined() ? sums[i] + part[i] : part[i];
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_TRUE(near(gradients[i], sums[i], 1e-9));
}

TEST_F(Attention, ModulusOfComplexScores) {
  const auto complex_heads = [] { return random({kBatch, kHeads, kTokens, 2 * kWidth}); };
  const Tensor query = complex_heads(), key = complex_heads(), value = complex_heads();
  const auto as_complex = [](const Tensor& heads) {
    const auto parts = heads.chunk(2, -1);
    return torch::complex(parts[0], parts[1]);
  };
  AttentionTerms terms;
  terms.scale = 0.6;
  terms.complex_scores = ComplexScores::kModulus;
  const Tensor scores =
      0.6 * torch::matmul(as_complex(query), as_complex(key).transpose(-1, -2)).abs();
  EXPECT_TRUE(near(attention_scores(query, key, terms, {}), scores, 1e-11));
  const Tensor mask = padding();
  const Tensor masked = scores.masked_fill(mask.logical_not().unsqueeze(1).unsqueeze(1),
                                           -std::numeric_limits<double>::infinity());
  const Tensor plain = torch::matmul(torch::softmax(masked, -1), value);
  const Tensor ours = attention(query, key, value, terms, mask, 0.0);
  EXPECT_TRUE(near(ours, plain, 1e-11));
  const Tensor cotangent = torch::randn_like(ours);
  const auto our_gradients = torch::autograd::grad({ours}, {query, key, value}, {cotangent});
  const auto plain_gradients = torch::autograd::grad({plain}, {query, key, value}, {cotangent});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(near(our_gradients[i], plain_gradients[i], 1e-9));
  }
}

struct Route {
  at::DeviceType device;
  bool bias, padding, distances, blocks;
  AttentionPath path;
};

TEST_F(Attention, RoutesByDeviceAndTerms) {
  const Route routes[] = {
      {at::kCPU, false, false, false, false, AttentionPath::kOwn},
      {at::kCPU, true, true, false, false, AttentionPath::kOwn},
      {at::kCUDA, false, false, false, false, AttentionPath::kFused},
      {at::kCUDA, true, false, false, false, AttentionPath::kFusedBias},
      {at::kCUDA, false, true, false, false, AttentionPath::kFusedPadding},
      {at::kCUDA, true, true, false, false, AttentionPath::kOwn},
      {at::kCUDA, false, false, true, false, AttentionPath::kOwn},
      {at::kCUDA, true, false, false, true, AttentionPath::kOwn},
  };
  for (const Route& route : routes) {
    AttentionTerms terms;
    if (route.bias) terms.bias = random({kHeads, kTokens, kTokens});
    if (route.distances) terms.relative_value = random({1, 3, kWidth});
    terms.bias_blocks = route.blocks;
    EXPECT_EQ(attention_path(route.device, terms, route.padding), route.path)
        << attention_path_name(route.path);
  }
}

}  // namespace
}  // namespace tupelo::attention_test
