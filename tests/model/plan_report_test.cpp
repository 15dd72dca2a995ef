#include "model/plan_report.h"

#include <gtest/gtest.h>

namespace tupelo::plan_report_test {
namespace {

ModelOptions base_options(const std::string& position) {
  ModelOptions options;
  options.vocab_size = 100;
  options.input_position = "none";
  options.position = position;
  return options;
}

PlanReport base_report(const std::string& position, bool padding = false) {
  return plan_report(RobertaForMaskedLm(base_options(position)), 512, padding);
}

TEST(PlanReport, CountsEveryParameterOfTheBaseModelOnce) {
  const PlanReport report = base_report("all:tupe-a");
  // 513 x 768 rows, a norm, two projections with bias.
  EXPECT_EQ(report.position_parameters, 1'576'704);
  EXPECT_EQ(report.parameters, 87'302'500);
  ASSERT_EQ(report.layers.size(), 12u);
  for (std::size_t layer = 0; layer < 12; ++layer) {
    EXPECT_EQ(report.layers[layer].encoding, "tupe-a");
    EXPECT_EQ(report.layers[layer].group, 0);
    EXPECT_EQ(report.layers[layer].parameters, layer == 0 ? 1'576'704 : 0);
  }
  EXPECT_EQ(report.input, "none");
  EXPECT_EQ(report.input_parameters, 0);
  EXPECT_EQ(report.mask_decoder_parameters, 0);
}

TEST(PlanReport, WorkOfTheBaseModel) {
  // 8.05 GFLOP for 512 tokens.
  EXPECT_EQ(base_report("all:tupe-a").layer_flops, 15'728'640.0);
  const PlanReport bias = base_report("all:tupe-a");
  const PlanReport features = base_report("all:tupe-a(fold=concat)");
  const PlanReport turned = base_report("all:rope");
  for (std::size_t layer = 0; layer < 12; ++layer) {
    EXPECT_EQ(bias.layers[layer].extra_flops, 12.0 * 512.0);
    EXPECT_EQ(features.layers[layer].extra_flops, 2.0 * 512 * 12 * (64 + 8));
    EXPECT_EQ(turned.layers[layer].extra_flops, 2.0 * 3 * 768);
    EXPECT_EQ(turned.layers[layer].parameters, 0);
    EXPECT_EQ(turned.layers[layer].cpu.kept_bytes, 0);
  }
}

TEST(PlanReport, TermsAreCountedOncePerGroup) {
  const RobertaForMaskedLm model(base_options("0-5:none,6-8:tupe-r,9-11:tupe-a(share=layer)"));
  const PlanReport report = plan_report(model, 128, false);
  for (std::size_t layer = 0; layer < 12; ++layer) {
    const std::int64_t group = report.layers[layer].group;
    const bool first = layer == 6 || layer >= 9;
    EXPECT_EQ(group, layer < 6 ? -1 : (layer < 9 ? 0 : static_cast<std::int64_t>(layer) - 8));
    EXPECT_EQ(report.layers[layer].shared_flops,
              first ? model.encodings()[static_cast<std::size_t>(group)]->terms_flops(128) : 0.0);
    EXPECT_EQ(report.layers[layer].parameters, first ? 1'576'704 + (layer == 6 ? 33 * 12 : 0) : 0);
    EXPECT_EQ(report.layers[layer].extra_flops, layer < 6 ? 0.0 : 12.0 * 128.0);
  }
  EXPECT_EQ(report.position_parameters, 4 * 1'576'704 + 33 * 12);
}

TEST(PlanReport, MemoryFollowsThePath) {
  const std::int64_t square = 4 * 12 * 512 * 512;
  const PlanLayer bias = base_report("all:tupe-a").layers[0];
  EXPECT_EQ(bias.cpu.path, AttentionPath::kOwn);
  EXPECT_EQ(bias.cpu.kept_bytes, 0);
  EXPECT_EQ(bias.cuda.path, AttentionPath::kFusedBias);
  EXPECT_EQ(bias.cuda.kept_bytes, 0);
  const PlanLayer padded = base_report("all:tupe-a", /*padding=*/true).layers[0];
  EXPECT_EQ(padded.cuda.path, AttentionPath::kOwn);
  EXPECT_EQ(padded.cuda.kept_bytes, square);
  const PlanLayer features = base_report("all:tupe-a(fold=concat)").layers[0];
  EXPECT_EQ(features.cpu.kept_bytes, 4 * 512 * 2 * 12 * (64 + 8));
  EXPECT_EQ(features.cuda.path, AttentionPath::kFused);
}

TEST(PlanReport, InputAndMaskDecoderAreCountedBesideTheLayers) {
  ModelOptions options = base_options("0-10:tupe-r,11:none");
  options.input_position = "learned";
  const PlanReport learned = plan_report(RobertaForMaskedLm(options), 512, false);
  EXPECT_EQ(learned.input, "learned");
  EXPECT_EQ(learned.input_parameters, 513 * 768);  // a row for padding in front
  EXPECT_EQ(learned.position_parameters, 513 * 768 + 1'576'704 + 33 * 12);
  options.input_position = "none";
  options.mask_decoder = "emd";
  const PlanReport decoder = plan_report(RobertaForMaskedLm(options), 512, false);
  EXPECT_EQ(decoder.mask_decoder, "emd");
  EXPECT_GE(decoder.mask_decoder_parameters, 512 * 768);
  EXPECT_EQ(decoder.position_parameters, decoder.mask_decoder_parameters + 1'576'704 + 33 * 12);
}

TEST(PlanReport, RefusesLengthsThatAnEncodingDoesNotCover) {
  const RobertaForMaskedLm model(base_options("all:tupe-a"));
  EXPECT_THROW(plan_report(model, 513, false), std::invalid_argument);
}

// Every part of the formula by itself, in a layer small enough to count by hand.
class PlanCosts : public ::testing::Test {
 protected:
  // What `terms` adds: operations per token; bytes on the same path as the plain layer's.
  void expect(double flops, std::int64_t bytes) const {
    EXPECT_EQ(extra_layer_flops(terms, shape), flops);
    EXPECT_EQ(extra_kept_bytes(terms, shape, AttentionPath::kOwn, AttentionPath::kOwn), bytes);
    EXPECT_EQ(extra_kept_bytes(terms, shape, AttentionPath::kFused, AttentionPath::kFused), bytes);
    EXPECT_EQ(extra_kept_bytes(terms, shape, AttentionPath::kOwn, AttentionPath::kFused),
              bytes + 2 * 5 * 5 * 4);
  }

  static torch::Tensor some(std::vector<std::int64_t> sizes) { return torch::zeros(sizes); }

  LayerShape shape{2, 4, 16, 5};
  AttentionTerms terms = plain_attention_terms(4);
};

TEST_F(PlanCosts, PlainLayer) {
  // 2 (4 8^2 + 2 8 16) + 4 5 8
  EXPECT_EQ(plain_layer_flops(shape), 1184.0);
  expect(0, 0);
}

TEST_F(PlanCosts, Bias) {
  terms.bias = some({2, 5, 5});
  expect(10, 0);
}

TEST_F(PlanCosts, OffsetsAndGain) {
  terms.query_offset = some({2, 5, 4});
  terms.key_offset = some({2, 5, 4});
  terms.value_offset = some({2, 5, 4});
  expect(24, 0);
  terms.query_gain = some({2, 1, 1});
  expect(32, 4 * 5 * 8);  // a trainable factor keeps what it multiplies
}

TEST_F(PlanCosts, Features) {
  terms.query_extra = some({2, 5, 4});
  terms.key_extra = some({2, 5, 4});
  expect(2 * 5 * 8, 4 * 5 * 16);
  terms.query_extra_gain = some({2, 1, 1});
  expect(2 * 5 * 8 + 16, 4 * 5 * (16 + 8));
}

TEST_F(PlanCosts, Phases) {
  terms.phase_cos = terms.phase_sin = some({5, 2});
  terms.phase_key = some({5, 4});
  expect((2 * 5 + 3) * 8, 4 * 5 * 16);
  terms.phase_map = some({2, 4, 4});
  terms.relative_query_offset = some({2, 1, 4});
  expect((2 * 5 + 3) * 8 + 2 * 32 + 8, 4 * 5 * (16 + 8));
  terms.phase_value = some({5, 4});
  expect((2 * 5 + 3) * 8 + 2 * 32 + 8 + (2 * 5 + 4) * 8, 4 * 5 * (16 + 8 + 8));
}

TEST_F(PlanCosts, Distances) {
  terms.relative_key = some({1, 5, 4});
  expect(2 * 5 * 8 + 10, 0);
  terms.relative_key = some({2, 21, 4});  // nine distances occur among five tokens
  expect(2 * 9 * 8 + 10, 0);
  terms.relative_query = some({2, 5, 4});
  terms.relative_value = some({1, 5, 4});
  expect((2 * 9 * 8 + 10) + 2 * (2 * 5 * 8 + 10), 0);
  terms.key_offset = some({2, 5, 4});  // keys meet distances without it
  expect((2 * 9 * 8 + 10) + 2 * (2 * 5 * 8 + 10) + 8, 4 * 5 * 8);
  terms.relative_query_offset = some({2, 1, 4});
  expect((2 * 9 * 8 + 10) + 2 * (2 * 5 * 8 + 10) + 16, 4 * 5 * 16);
}

TEST_F(PlanCosts, RowsThatTheLayerProjects) {
  terms.relative_rows = some({5, 8});
  EXPECT_EQ(relative_row_flops(terms, shape), 0);
  terms.relative_rows_as_keys = true;
  EXPECT_EQ(relative_row_flops(terms, shape), 2 * 5 * 8 * 8);
  terms.relative_rows_as_queries = true;
  EXPECT_EQ(relative_row_flops(terms, shape), 2 * 2 * 5 * 8 * 8);
  expect(2 * (2 * 5 * 8 + 10), 0);
}

TEST_F(PlanCosts, RotationAndTemperature) {
  terms.rotation_cos = terms.rotation_sin = some({5, 2});
  expect(6 * 8, 0);
  terms.rotate_values = true;
  terms.temperature = LengthTemperature::kPlain;
  expect(9 * 8 + 8, 0);
}

TEST_F(PlanCosts, Convolution) {
  terms.convolution_weight = some({8, 1, 3});
  terms.convolution_bias = some({8});
  expect(2 * 24 + 3 * 8, 4 * 5 * 16);
}

TEST_F(PlanCosts, ComplexHiddenStates) {
  terms.complex_scores = ComplexScores::kHermitian;
  expect(1184, 4 * 5 * (8 * 8 + 2 * 16));
  terms.complex_scores = ComplexScores::kModulus;
  EXPECT_EQ(extra_layer_flops(terms, shape), 1184 + 4 * 5 * 8 + 4 * 10);
  EXPECT_EQ(extra_kept_bytes(terms, shape, AttentionPath::kModulus, AttentionPath::kOwn),
            4 * 5 * (8 * 8 + 2 * 16) + 4 * 3 * 2 * 25);
}

}  // namespace
}  // namespace tupelo::plan_report_test
