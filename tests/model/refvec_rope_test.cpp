// Rotations held to their reference vectors.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <string>

#include "model/attention.h"
#include "model/position/rotation_frequencies.h"
#include "tests/model/formulas.h"
#include "tests/model/refvec_case.h"

namespace tupelo::refvec_rope_test {
namespace {

using torch::Tensor;

class RefvecRope : public testing::TestWithParam<torch::ScalarType> {};

Tensor as_tensor(const RotationFrequencies& frequencies) {
  return torch::tensor(frequencies.radians, torch::kFloat64);
}

void check_rope(torch::ScalarType precision, bool by_model) {
  RefvecCase given("rope", precision);
  const std::int64_t tokens = given.vectors.integer("seq");
  ASSERT_EQ(given.vectors.integer("first"), 0);
  const RotationSettings settings{.width = given.vectors.integer("head_dim"),
                                  .base = given.vectors.number("base"),
                                  .trained_length = tokens};
  given.compare("inv_freq", as_tensor(rotation_frequencies(settings, tokens)));
  for (const std::string layout : {"interleaved", "half"}) {
    const auto encoding = given.encoding("rope", {{"layout", layout}});
    const AttentionTerms terms = encoding->terms(tokens);
    given.compare("cos", terms.rotation_cos);
    given.compare("sin", terms.rotation_sin);
    const Tensor &query = given.input("q"), &key = given.input("k"), &value = given.input("v");
    const auto rotated = [&](const Tensor& heads) {
      return plain_turn(heads, terms.rotation_cos, terms.rotation_sin, terms.rotation_layout);
    };
    given.compare(layout + ".q", rotated(query));
    given.compare(layout + ".k", rotated(key));
    given.compare(layout + ".scores", by_model ? attention_scores(query, key, terms, {})
                                               : plain_scores(query, key, terms));
    given.compare_rows(layout + ".attn",
                       by_model ? attention(query, key, value, terms, given.key_mask(), 0.0)
                                : plain_attention(query, key, value, terms, given.key_mask()));
  }
  given.backward();
  given.finish();
}

TEST_P(RefvecRope, WrittenOut) { check_rope(GetParam(), false); }
TEST_P(RefvecRope, AttentionOfTheModel) { check_rope(GetParam(), true); }

// An encoding for sequences of `tokens`, of which the case looks at a few positions.
AttentionTerms scaled_terms(const RefvecCase& given, const std::string& scaling,
                            std::int64_t tokens) {
  PositionContext context;
  context.heads = 1;
  context.head_width = given.vectors.integer("head_dim");
  context.max_positions = given.vectors.integer("orig_len");
  PositionOptions options = {{"scaling", scaling}};
  if (scaling != "none") {
    options.emplace_back("factor", std::to_string(given.vectors.number("factor")));
  }
  return make_position_encoding("rope", context, options)->terms(tokens);
}

TEST_P(RefvecRope, Scalings) {
  RefvecCase given("rope_scaled", GetParam());
  const Tensor positions = given.vectors.tensor("in.positions");
  for (std::string name : {"none", "pi", "ntk", "ntk_dynamic", "ntk_dynamic_short", "ntk_fixed",
                           "ntk_mixed", "yarn", "yarn_notrunc"}) {
    const std::string prefix = name + ".";
    const bool is_short = name == "ntk_dynamic_short";
    const std::int64_t tokens = given.vectors.integer(is_short ? "short_len" : "cur_len");
    if (is_short) name = "ntk_dynamic";
    std::replace(name.begin(), name.end(), '_', '-');
    const RotationFrequencies frequencies =
        rotation_frequencies({.width = given.vectors.integer("head_dim"),
                              .base = given.vectors.number("base"),
                              .scaling = name,
                              .factor = given.vectors.number("factor"),
                              .trained_length = given.vectors.integer("orig_len")},
                             tokens);
    given.compare(prefix + "inv_freq", as_tensor(frequencies));
    given.compare(prefix + "multiplier", torch::tensor({frequencies.magnitude}, torch::kFloat64));

    const Tensor angles = positions.to(torch::kFloat64).unsqueeze(1) * as_tensor(frequencies);
    Tensor cos = angles.cos() * frequencies.magnitude, sin = angles.sin() * frequencies.magnitude;
    if (!is_short) {  // positions beyond a short sequence have no rows in its tables
      const AttentionTerms terms = scaled_terms(given, name, tokens);
      cos = terms.rotation_cos.index_select(0, positions);
      sin = terms.rotation_sin.index_select(0, positions);
    }
    const Tensor result = plain_turn(given.input("q"), cos, sin, RotationLayout::kInterleaved);
    given.compare(prefix + "q", result);
    given.add_to_loss(prefix + "q", result);
  }
  given.backward();
  given.finish();
}

TEST_P(RefvecRope, ShortSequencesOfADynamicScalingAreUnscaled) {
  const RefvecCase given("rope_scaled", GetParam());
  const std::int64_t tokens = given.vectors.integer("short_len");
  const AttentionTerms scaled = scaled_terms(given, "ntk-dynamic", tokens);
  const AttentionTerms plain = scaled_terms(given, "none", tokens);
  EXPECT_TRUE(scaled.rotation_cos.equal(plain.rotation_cos));
  EXPECT_TRUE(scaled.rotation_sin.equal(plain.rotation_sin));
}

INSTANTIATE_TEST_SUITE_P(Precisions, RefvecRope, testing::Values(torch::kFloat64, torch::kFloat32),
                         [](const auto& tested) {
                           return tested.param == torch::kFloat64 ? "Float64" : "Float32";
                         });

}  // namespace
}  // namespace tupelo::refvec_rope_test
