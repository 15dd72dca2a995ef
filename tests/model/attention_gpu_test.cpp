// The kernels that attention takes on a GPU, held to the plain formula in float64.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <ostream>
#include <string>
#include <vector>

#include "model/attention.h"
#include "model/roberta.h"
#include "tests/model/formulas.h"
#include "tests/model/tiny_model.h"

namespace tupelo::attention_gpu_test {
namespace {

using torch::Tensor;
constexpr std::int64_t kBatch = 2, kHeads = 3, kWidth = 64;

struct Case {
  std::int64_t tokens;
  bool bias, padding;
  torch::ScalarType type;
};

void PrintTo(const Case& tested, std::ostream* stream) {
  *stream << tested.tokens << " tokens" << (tested.bias ? ", bias" : "")
          << (tested.padding ? ", padding" : "") << ", " << toString(tested.type);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  // Lengths of 64 modulo 128 are those for which cuDNN returned NaN gradients under a mask.
  for (const std::int64_t tokens : {1, 7, 64, 100, 192, 320, 448, 512}) {
    for (const bool bias : {false, true}) {
      for (const bool padding : {false, true}) {
        for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
          all.push_back({tokens, bias, padding, type});
        }
      }
    }
  }
  return all;
}

class AttentionOnGpu : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { torch::manual_seed(5); }
};

TEST_P(AttentionOnGpu, EqualsTheFormulaForwardAndBackward) {
  const auto [tokens, with_bias, with_padding, type] = GetParam();
  const auto heads = [&] {
    return torch::randn({kBatch, kHeads, tokens, kWidth}, torch::kFloat64)
        .to(type)
        .to(torch::kFloat64)
        .requires_grad_();
  };
  const Tensor query = heads(), key = heads(), value = heads();
  AttentionTerms terms;
  terms.scale = 0.125;
  std::vector<Tensor> sources = {query, key, value};
  if (with_bias) {
    // Strongly negative, so that some rows' normalizers are far below what exp() of half precision
    // holds; of values that `type` holds, as the kernels take them in it.
    terms.bias = (torch::randn({kHeads, tokens, tokens}, torch::kFloat64) - 100.0)
                     .to(type)
                     .to(torch::kFloat64)
                     .requires_grad_();
    sources.push_back(terms.bias);
  }
  Tensor mask;
  if (with_padding) {
    mask = torch::ones({kBatch, tokens}, torch::kBool);
    mask[1].narrow(0, (tokens + 1) / 2, tokens / 2).fill_(false);
  }
  const Tensor exact = plain_attention(query, key, value, terms, mask);
  const Tensor cotangent = torch::randn_like(exact);
  const auto exact_gradients = torch::autograd::grad({exact}, sources, {cotangent});

  std::vector<Tensor> on_gpu;
  for (const Tensor& source : sources) {
    const bool is_bias = source.dim() == 3;
    on_gpu.push_back(
        source.detach().to(torch::kCUDA, is_bias ? torch::kFloat32 : type).requires_grad_());
  }
  AttentionTerms gpu_terms = terms;
  if (with_bias) gpu_terms.bias = on_gpu[3];
  const Tensor gpu_mask = mask.defined() ? mask.to(torch::kCUDA) : mask;
  const AttentionPath expected =
      with_bias ? (with_padding ? AttentionPath::kOwn : AttentionPath::kFusedBias)
                : (with_padding ? AttentionPath::kFusedPadding : AttentionPath::kFused);
  EXPECT_EQ(attention_path(at::kCUDA, gpu_terms, with_padding), expected);
  const Tensor result = attention(on_gpu[0], on_gpu[1], on_gpu[2], gpu_terms, gpu_mask, 0.0);
  const bool half = type == torch::kBFloat16;
  EXPECT_TRUE(near(result.cpu(), exact,
                   half ? 3e-2 * std::max(1.0, exact.abs().max().item<double>()) : 1e-3));
  const auto gradients =
      torch::autograd::grad({result}, on_gpu, {cotangent.to(torch::kCUDA, result.scalar_type())});
  double largest = 0.0;
  for (const Tensor& gradient : exact_gradients) {
    largest = std::max(largest, gradient.abs().max().item<double>());
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_TRUE(near(gradients[i].cpu(), exact_gradients[i], (half ? 6e-2 : 1e-3) * largest))
        << "source " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, AttentionOnGpu, testing::ValuesIn(cases()),
                         [](const auto& tested) {
                           const Case& c = tested.param;
                           return std::to_string(c.tokens) + (c.bias ? "Bias" : "") +
                                  (c.padding ? "Padding" : "") +
                                  (c.type == torch::kFloat32 ? "Float32" : "BFloat16");
                         });

// Every encoding through a whole model: results and gradients of the CPU.
TEST(EncodingsOnGpu, EqualTheCpu) {
  for (const PositionEncodingKind& kind : position_encoding_kinds()) {
    const auto model = tiny_model(tiny_options("all:" + kind.name), torch::kFloat32);
    torch::manual_seed(23);
    perturb(*model, 0.1);
    TinyBatch batch(3, 9);
    batch.pad(3);
    const Tensor loss = batch.loss(*model);
    loss.backward();
    const auto gradients = gradients_of(*model);
    clear_gradients(*model);
    model->to(torch::kCUDA);
    const Tensor gpu_loss =
        model
            ->masked_lm_loss(batch.input_ids.cuda(), batch.attention_mask.cuda(),
                             batch.masked_positions.cuda(), batch.labels.cuda())
            .loss_sum;
    EXPECT_TRUE(near(gpu_loss.cpu(), loss, 1e-2)) << kind.name;
    gpu_loss.backward();
    for (const auto& [name, gradient] : gradients_of(*model)) {
      const Tensor& expected = gradients.at(name);
      EXPECT_TRUE(
          near(gradient.cpu(), expected, 2e-2 * std::max(1.0, expected.abs().max().item<double>())))
          << kind.name << " " << name;
    }
  }
}

}  // namespace
}  // namespace tupelo::attention_gpu_test
