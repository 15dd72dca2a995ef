// What a training step keeps for backward, as predicted and as the allocator counts it.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "model/activation_probe.h"
#include "model/allocation_meter.h"
#include "model/position/input_encoding.h"
#include "tests/model/tiny_model.h"

namespace tupelo::activation_memory_test {
namespace {

using torch::Tensor;

constexpr std::int64_t kRows = 5, kTokens = 16;

struct Measured {
  std::int64_t kept = 0, peak = 0;
};

// One forward and backward pass of the model under its policy. A pass before it fills what is
// allocated once: gradients, caches.
Measured measure(RobertaForMaskedLm& model, const TinyBatch& batch) {
  model.train();
  batch.loss(model).backward();
  AllocationMeter meter;
  const MaskedLmOutput output = model.masked_lm_loss(batch.input_ids, batch.attention_mask,
                                                     batch.masked_positions, batch.labels);
  Measured measured;
  measured.kept = meter.live_bytes() -
                  static_cast<std::int64_t>(output.loss_sum.nbytes() + output.correct.nbytes());
  output.loss_sum.backward();
  measured.peak = meter.peak_bytes();
  return measured;
}

ActivationShape shape_of(const TinyBatch& batch) {
  ActivationShape shape;
  shape.rows = batch.input_ids.size(0);
  shape.tokens = batch.input_ids.size(1);
  shape.masked = batch.labels.size(0);
  shape.padding = batch.attention_mask.defined();
  return shape;
}

const std::vector<std::string>& policies() {
  static const std::vector<std::string> all = {"none",    "full",  "attention",    "ffn",
                                               "every-2", "0:ffn", "1-2:attention"};
  return all;
}

void expect_predictions(ModelOptions options, torch::ScalarType type, const TinyBatch& batch) {
  options.layers = 3;
  options.dropout = options.attention_dropout = 0.1;
  const auto model = tiny_model(options, type);
  const ActivationProfile profile = profile_activations(*model, shape_of(batch));
  for (const std::string& text : policies()) {
    const RecomputePolicy policy = parse_recompute(text, options.layers, "recompute");
    model->recompute(policy);
    const Measured measured = measure(*model, batch);
    const ActivationForecast predicted = forecast(profile, policy.layers);
    EXPECT_EQ(predicted.kept_bytes, measured.kept)
        << options.input_position << " " << options.position << " " << options.mask_decoder << " "
        << type << " recompute " << text;
  }
}

class EncodingMemory : public testing::TestWithParam<std::string> {};

TEST_P(EncodingMemory, IsWhatWasPredicted) {
  for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
    expect_predictions(tiny_options(GetParam()), type, TinyBatch(kRows, kTokens));
    TinyBatch padded(kRows, kTokens);
    padded.pad(3);
    expect_predictions(tiny_options(GetParam()), type, padded);
  }
  expect_predictions(tiny_options(GetParam()), torch::kFloat32, TinyBatch(1, kTokens));
  expect_predictions(tiny_options(GetParam()), torch::kFloat32, TinyBatch(2, 7));
}

std::vector<std::string> plans() {
  std::vector<std::string> plans = {"all:none",
                                    "0-1:none,2:tupe-r",
                                    "0:rope,1-2:tupe-r(content=rope)",
                                    "all:tupe-full(share=layer)",
                                    "all:tupe-full(pp=both,temperature=per-head,fold=concat)",
                                    "all:tupe-a(fold=concat)"};
  for (const PositionEncodingKind& kind : position_encoding_kinds()) {
    plans.push_back("all:" + kind.name);
  }
  return plans;
}

INSTANTIATE_TEST_SUITE_P(Plans, EncodingMemory, testing::ValuesIn(plans()));

// Of a model large enough that tensors of a few numbers do not matter.
TEST(ActivationMemory, PeaksAboutWherePredicted) {
  ModelOptions options = tiny_options("0-1:none,2-3:tupe-r", 4);
  options.input_position = "learned";
  options.hidden_size = 48;
  options.intermediate_size = 192;
  options.max_positions = 64;
  options.dropout = options.attention_dropout = 0.1;
  const auto model = tiny_model(options, torch::kFloat32);
  const TinyBatch batch(4, 64);
  const ActivationProfile profile = profile_activations(*model, shape_of(batch));
  for (const std::string& text : policies()) {
    const RecomputePolicy policy = parse_recompute(text, options.layers, "recompute");
    model->recompute(policy);
    const auto measured = static_cast<double>(measure(*model, batch).peak);
    const ActivationForecast predicted = forecast(profile, policy.layers);
    EXPECT_NEAR(static_cast<double>(predicted.peak_bytes), measured, 0.05 * measured) << text;
  }
}

TEST(ActivationMemory, ProbingLeavesNoTrace) {
  const auto model = tiny_model(tiny_options("all:tupe-r"), torch::kFloat32);
  model->eval();
  torch::manual_seed(9);
  const Tensor expected = torch::rand({4});
  torch::manual_seed(9);
  profile_activations(*model, shape_of(TinyBatch(kRows, kTokens)));
  torch::manual_seed(9);
  const TinyBatch batch(kRows, kTokens);
  torch::manual_seed(9);
  const ActivationProfile first = profile_activations(*model, shape_of(batch));
  EXPECT_TRUE(torch::rand({4}).equal(expected)) << "generator was moved";
  EXPECT_FALSE(model->is_training());
  for (const Tensor& parameter : model->parameters()) {
    EXPECT_FALSE(parameter.grad().defined());
  }
  // Another number of rows, and back: caches play no part.
  profile_activations(*model, shape_of(TinyBatch(2, 7)));
  const std::vector<Recomputed> none(2, Recomputed::kNothing);
  EXPECT_EQ(forecast(profile_activations(*model, shape_of(batch)), none).peak_bytes,
            forecast(first, none).peak_bytes);
}

TEST(ActivationMemory, OfTheSentenceOrderHead) {
  ModelOptions options = tiny_options("all:tupe-r");
  options.sentence_order_head = true;
  const auto model = tiny_model(options, torch::kFloat32);
  model->train();
  const TinyBatch batch(kRows, kTokens);
  const Tensor rows = torch::arange(kRows, torch::kInt64), labels = torch::zeros_like(rows);
  const TokenLayout layout = TokenLayout::rows(batch.input_ids, {});
  ActivationShape shape = shape_of(batch);
  shape.pairs = kRows;
  const ActivationProfile profile = profile_activations(*model, shape);
  const AllocationMeter meter;
  MaskedLmOutput words;
  SentenceOrderOutput order;
  {
    const Tensor hidden = model->hidden_states(batch.input_ids, layout);
    words = model->masked_lm_loss_of(hidden, batch.masked_positions, batch.labels);
    order = model->sentence_order_loss_of(hidden, rows, labels);
  }
  constexpr std::int64_t kLosses = 2 * (4 + 8);
  EXPECT_EQ(forecast(profile, std::vector<Recomputed>(2, Recomputed::kNothing)).kept_bytes,
            meter.live_bytes() - kLosses);
}

TEST(ActivationMemory, OfInputEncodings) {
  for (const InputEncodingKind& kind : input_encoding_kinds()) {
    ModelOptions options = tiny_options("all:none");
    options.input_position = kind.name;
    expect_predictions(options, torch::kFloat32, TinyBatch(kRows, kTokens));
  }
  for (const std::string form : {"hermitian", "modulus"}) {
    ModelOptions options = tiny_options("all:none");
    options.input_position = "complex-order(form=" + form + ")";
    expect_predictions(options, torch::kFloat32, TinyBatch(kRows, kTokens));
  }
}

TEST(ActivationMemory, OfTheMaskDecoder) {
  for (const std::string decoder : {"emd", "emd(steps=1)", "emd(steps=3)"}) {
    for (const std::string plan : {"all:none", "all:tupe-r", "0-1:none,2:deberta-v2"}) {
      ModelOptions options = tiny_options(plan);
      options.mask_decoder = decoder;
      expect_predictions(options, torch::kFloat32, TinyBatch(kRows, kTokens));
    }
  }
}

}  // namespace
}  // namespace tupelo::activation_memory_test
