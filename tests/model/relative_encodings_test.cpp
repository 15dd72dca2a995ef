// Properties of the encodings of the distance that reference vectors do not show.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>

#include "model/attention.h"
#include "model/position/position_encoding.h"
#include "tests/model/formulas.h"
#include "tests/model/small_encodings.h"

namespace tupelo::relative_encodings_test {
namespace {

using torch::Tensor;

// --- the distance alone -------------------------------------------------------------------------

struct Relative {
  std::string name;
  PositionOptions options;
};

class EncodingsOfTheDistance : public testing::TestWithParam<Relative> {};

// Contents moved by one token have scores moved by one token.
TEST_P(EncodingsOfTheDistance, DoNotFeelWhereASequenceBegins) {
  torch::manual_seed(3);
  const AttentionTerms terms = make(GetParam().name, GetParam().options)->terms(8);
  const Tensor query = random_heads(8), key = random_heads(8);
  const Tensor here = plain_scores(query, key, terms);
  const Tensor moved = plain_scores(query.roll(1, 2), key.roll(1, 2), terms);
  EXPECT_TRUE(
      near(moved.narrow(2, 1, 7).narrow(3, 1, 7), here.narrow(2, 0, 7).narrow(3, 0, 7), 1e-12));
}

TEST_P(EncodingsOfTheDistance, TakeSequencesOfAnyLength) {
  torch::manual_seed(3);
  const auto encoding = make(GetParam().name, GetParam().options);
  EXPECT_EQ(encoding->longest(), kAnyLength);
  const Tensor query = random_heads(40), key = random_heads(40);
  const Tensor scores = plain_scores(query, key, encoding->terms(40));
  EXPECT_TRUE(near(attention_scores(query, key, encoding->terms(40), {}), scores, 1e-12));
  const auto first = [](const Tensor& tensor) { return tensor.narrow(2, 0, 6); };
  EXPECT_TRUE(near(plain_scores(first(query), first(key), encoding->terms(6)),
                   first(scores).narrow(3, 0, 6), 1e-12));
}

// A swap of left and right would pass unnoticed in a symmetric case.
TEST_P(EncodingsOfTheDistance, TellLeftFromRight) {
  torch::manual_seed(5);
  const AttentionTerms terms = make(GetParam().name, GetParam().options)->terms(7);
  const Tensor content = random_heads(1).expand({2, kHeads, 7, kWidth});
  const Tensor scores = plain_scores(content, content, terms);
  EXPECT_GT((scores - scores.transpose(2, 3)).abs().max().item<double>(), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(
    Table, EncodingsOfTheDistance,
    testing::Values(Relative{"t5", {}}, Relative{"t5", {{"rel_bins", "8"}, {"max_distance", "5"}}},
                    Relative{"alibi", {{"form", "learned"}}}, Relative{"shaw", {{"clip", "3"}}},
                    Relative{"nezha", {{"clip", "3"}}}, Relative{"nezha", {}},
                    Relative{"xlnet", {{"r_dim", "8"}}}, Relative{"xlnet", {{"clamp_len", "3"}}},
                    Relative{"xlnet", {{"fold", "concat"}}}, Relative{"deberta", {{"span", "3"}}},
                    Relative{"deberta", {{"p2c_index", "paper"}}},
                    Relative{"deberta", {{"terms", "c2p"}, {"span", "20"}}}),
    [](const auto& tested) {
      std::string name = tested.param.name;
      for (const auto& [option, value] : tested.param.options) name += "_" + option + "_" + value;
      std::replace(name.begin(), name.end(), '+', '_');
      return name;
    });

// --- alibi --------------------------------------------------------------------------------------

TEST(Alibi, SplitHeadsAreBlindToOneSideEachAndAnOddHeadLooksLeft) {
  const AttentionTerms terms = make("alibi", {{"form", "split"}})->terms(4);
  const Tensor open = terms.bias.isfinite();
  const Tensor left = torch::ones({4, 4}, torch::kBool).tril();
  EXPECT_TRUE(open[0].equal(left));
  EXPECT_TRUE(open[1].equal(left));
  EXPECT_TRUE(open[2].equal(left.t()));
  EXPECT_DOUBLE_EQ(terms.bias[1][3][1].item<double>(), 2 * -std::exp2(-8.0));
  EXPECT_DOUBLE_EQ(terms.bias[2][1][3].item<double>(), 2 * -std::exp2(-8.0));
}

TEST(Alibi, InterpolationDividesDistances) {
  for (const std::string form : {"symmetric", "learned"}) {
    const Tensor plain = make("alibi", {{"form", form}})->terms(5).bias;
    const Tensor wider = make("alibi", {{"form", form}, {"interpolation", "2.5"}})->terms(5).bias;
    EXPECT_TRUE(near(wider * 2.5, plain, 1e-14));
  }
}

TEST(Alibi, FirstSlopesAreSigmoidsAroundMinusTwo) {
  PositionContext context = context_of(4000);
  const auto encoding = make("alibi", {{"form", "learned"}}, context);
  for (const auto& parameter : encoding->named_parameters()) {
    EXPECT_NEAR(parameter.value().mean().item<double>(), -2.0, 0.1) << parameter.key();
    EXPECT_NEAR(parameter.value().std().item<double>(), 1.0, 0.1) << parameter.key();
  }
}

TEST(Alibi, FixedBiasIsKeptFromCallToCallAndIsNoPartOfTheModule) {
  const auto encoding = make("alibi");
  const Tensor bias = encoding->terms(6).bias;
  EXPECT_TRUE(encoding->terms(6).bias.is_same(bias));
  EXPECT_EQ(encoding->terms(3).bias.size(1), 3);
  EXPECT_TRUE(encoding->terms(6).bias.equal(bias));
  EXPECT_EQ(encoding->buffers().size() + encoding->parameters().size(), 0u);
}

TEST(Alibi, StaysExactWhenTheModelIsCast) {
  const auto encoding = make("alibi");
  const Tensor exact = encoding->terms(300).bias;
  EXPECT_EQ(exact.scalar_type(), torch::kFloat64);
  torch::nn::Module model;
  model.register_module("position", encoding);
  model.to(torch::kBFloat16);
  const Tensor bias = encoding->terms(300).bias;
  EXPECT_EQ(bias.scalar_type(), torch::kFloat32);
  EXPECT_TRUE(near(bias, exact, 1e-5));
}

// Without a parameter to read the device off. A meta tensor is on no device that this test runs on.
TEST(EncodingsWithoutParameters, FollowTheModel) {
  const auto encoding = make("alibi");
  torch::nn::Module model;
  model.register_module("position", encoding);
  model.to(torch::kCPU, torch::kFloat32);
  EXPECT_EQ(encoding->terms(3).bias.scalar_type(), torch::kFloat32);
  model.to(torch::kMeta);
  EXPECT_TRUE(encoding->terms(3).bias.is_meta());
  EXPECT_EQ(encoding->terms(3).bias.scalar_type(), torch::kFloat32);
  model.to(torch::kCPU, torch::kFloat64);
  EXPECT_TRUE(encoding->terms(3).bias.is_cpu());
  for (const std::string name : {"rope", "nezha"}) {
    const auto other = make(name);
    other->to(torch::kMeta);
    for (const Tensor& tensor : other->terms(3).tensors()) EXPECT_TRUE(tensor.is_meta()) << name;
  }
}

TEST(Alibi, PictureIsTheLineOfTheBias) {
  for (const std::string form : {"symmetric", "learned", "split"}) {
    const auto encoding = make("alibi", {{"form", form}});
    const Tensor line = encoding->picture(5).distance_bias;
    const Tensor bias = encoding->terms(5).bias;
    EXPECT_TRUE(line.narrow(1, 4, 5).equal(bias.select(1, 0))) << form;
    EXPECT_TRUE(line.narrow(1, 0, 5).equal(bias.select(1, 4))) << form;
    EXPECT_FALSE(encoding->picture(5).correlation.defined());
  }
}

// --- t5 and xlnet -------------------------------------------------------------------------------

TEST(T5, PictureIsTheLineOfTheBias) {
  const auto encoding = make("t5");
  const Tensor line = encoding->picture(5).distance_bias, bias = encoding->terms(5).bias;
  EXPECT_TRUE(line.narrow(1, 4, 5).equal(bias.select(1, 0)));
  EXPECT_TRUE(line.narrow(1, 0, 5).equal(bias.select(1, 4)));
}

TEST(T5, GradientOfTheTableSumsToZeroAndItsUnusedBucketGetsNone) {
  torch::manual_seed(2);
  const auto encoding = make("t5", {{"rel_bins", "8"}, {"max_distance", "5"}});
  attention(random_heads(9), random_heads(9), random_heads(9), encoding->terms(9), {}, 0.0)
      .pow(3)
      .sum()
      .backward();
  const Tensor gradient = encoding->parameters()[0].grad();
  EXPECT_TRUE(near(gradient.sum(0), torch::zeros({kHeads}), 1e-13));
  EXPECT_EQ(gradient[4].abs().max().item<double>(), 0.0);
}

TEST(T5, FirstValuesCanBeZero) {
  EXPECT_EQ(make("t5", {{"rel_init", "zero"}})->parameters()[0].abs().max().item<double>(), 0.0);
  EXPECT_GT(make("t5")->parameters()[0].abs().max().item<double>(), 0.0);
}

// The part of the scores that is left when contents are zero.
TEST(Xlnet, PictureIsThePartWithoutContents) {
  for (const std::string clamp : {"none", "3"}) {
    const auto encoding = make("xlnet", {{"clamp_len", clamp}, {"fold", "relative"}});
    AttentionTerms terms = encoding->terms(6);
    const Tensor nothing = torch::zeros({1, kHeads, 6, kWidth}, torch::kFloat64);
    const Tensor scores = plain_scores(nothing, nothing, terms)[0];
    const Tensor line = encoding->picture(6).distance_bias;
    EXPECT_TRUE(near(line.narrow(1, 5, 6), scores.select(1, 0), 1e-14));
    EXPECT_TRUE(near(line.narrow(1, 0, 6), scores.select(1, 5), 1e-14));
  }
}

TEST(Xlnet, FoldsWhereThatIsCheapAndNothingIsClamped) {
  const auto folded = [](const PositionOptions& options, std::int64_t tokens) {
    const AttentionTerms terms = make("xlnet", options)->terms(tokens);
    EXPECT_NE(terms.phase_key.defined(), terms.relative_key.defined());
    return terms.phase_key.defined();
  };
  EXPECT_FALSE(folded({}, 5));
  EXPECT_TRUE(folded({{"r_dim", "8"}}, 5));
  EXPECT_TRUE(folded({{"fold", "concat"}, {"clamp_len", "4"}}, 5));
  EXPECT_FALSE(folded({{"fold", "concat"}, {"clamp_len", "4"}}, 6));
  EXPECT_FALSE(folded({{"fold", "relative"}, {"r_dim", "8"}}, 5));
  EXPECT_THROW(make("xlnet", {{"r_dim", "7"}}), std::invalid_argument);
}

// --- folds of sinusoids -------------------------------------------------------------------------

void expect_equal_attention(const AttentionTerms& left, const AttentionTerms& right) {
  const Tensor query = random_heads(7), key = random_heads(7), value = random_heads(7);
  EXPECT_TRUE(near(plain_scores(query, key, left), plain_scores(query, key, right), 1e-12));
  const Tensor expected = plain_attention(query, key, value, right, {});
  EXPECT_TRUE(near(plain_attention(query, key, value, left, {}), expected, 1e-12));
  EXPECT_TRUE(near(attention(query, key, value, left, {}, 0.0), expected, 1e-12));
}

TEST(Nezha, FeaturesEqualVectorsWhileNothingIsClipped) {
  torch::manual_seed(4);
  for (const std::string clip : {"6", "20"}) {
    for (const std::string values : {"true", "false"}) {
      const PositionOptions options = {{"clip", clip}, {"values", values}};
      const auto folded = make("nezha", options);
      const auto plain = make("nezha", {{"clip", clip}, {"values", values}, {"fold", "relative"}});
      EXPECT_TRUE(folded->terms(7).phase_key.defined());
      EXPECT_EQ(folded->terms(7).phase_value.defined(), values == "true");
      EXPECT_TRUE(plain->terms(7).relative_key.defined());
      expect_equal_attention(folded->terms(7), plain->terms(7));
    }
  }
  EXPECT_TRUE(make("nezha", {{"clip", "5"}})->terms(7).relative_key.defined());
}

TEST(Xlnet, FeaturesEqualVectors) {
  torch::manual_seed(4);
  const auto folded = make("xlnet", {{"fold", "concat"}});
  const auto plain = make("xlnet", {{"fold", "relative"}});
  expect_equal_attention(folded->terms(7), plain->terms(7));
}

// --- deberta ------------------------------------------------------------------------------------

TEST(DebertaV2, RowsBelongToTheLayersMapsThatItsTermsNeed) {
  for (const std::string chosen : {"c2p+p2c", "c2p", "p2c"}) {
    const auto encoding = make("deberta-v2", {{"terms", chosen}, {"buckets", "4"}});
    const AttentionTerms terms = encoding->terms(5);
    EXPECT_EQ(terms.relative_rows_as_keys, chosen != "p2c");
    EXPECT_EQ(terms.relative_rows_as_queries, chosen != "c2p");
    EXPECT_DOUBLE_EQ(terms.scale, 1.0 / std::sqrt((chosen == "c2p+p2c" ? 3.0 : 2.0) * kWidth));
  }
}

TEST(DebertaV2, FartherDistancesNeedNoFurtherRows) {
  const auto encoding = make("deberta-v2", {{"buckets", "4"}, {"max_distance", "5"}});
  EXPECT_EQ(encoding->terms(3).relative_rows.size(0), 5);
  const Tensor longest = encoding->terms(30).relative_rows;
  EXPECT_EQ(longest.size(0), 9);
  EXPECT_TRUE(encoding->terms(5).relative_rows.equal(longest));
}

}  // namespace
}  // namespace tupelo::relative_encodings_test
