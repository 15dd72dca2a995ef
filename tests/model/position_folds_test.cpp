// Two ways of an encoding into the kernel have one result; and what single encodings promise.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "model/attention.h"
#include "tests/model/encoding_variants.h"
#include "tests/model/formulas.h"

namespace tupelo::position_folds_test {
namespace {

using torch::Tensor;

TEST(PositionFolds, AgreeForEverySettingOfTupeFull) {
  torch::manual_seed(2);
  for (const std::string pp : {"relative", "dot", "both", "none"}) {
    for (const std::string temperature : {"none", "shared", "per-head"}) {
      for (const std::string untie : {"false", "true"}) {
        EncodingVariant variant{"tupe-full",
                                {{"pp", pp}, {"temperature", temperature}, {"cls_untie", untie}}};
        variant.options.emplace_back("fold", "add");
        const auto added = small_encoding(variant);
        variant.options.back().second = "concat";
        const auto concatenated = small_encoding(variant);
        torch::NoGradGuard no_grad;
        for (const auto& parameter : added->named_parameters()) {
          concatenated->named_parameters()[parameter.key()].copy_(parameter.value());
        }
        const SmallHeads heads(8);
        EXPECT_TRUE(near(plain_scores(heads.query, heads.key, added->terms(8)),
                         plain_scores(heads.query, heads.key, concatenated->terms(8)), 1e-12))
            << variant.plan_entry();
      }
    }
  }
}

TEST(PositionFolds, PlainSumOfAllFourNeedsNoBias) {
  EXPECT_FALSE(small_encoding({"tupe-full", {{"pp", "dot"}}})->terms(5).bias.defined());
}

TEST(PositionFolds, VanishingContentTemperatureIsExactByConcatenation) {
  const auto encoding = small_encoding(
      {"tupe-full", {{"pp", "both"}, {"temperature", "per-head"}, {"temperature_cc", "true"}}});
  torch::NoGradGuard no_grad;
  encoding->named_parameters()["temperature"][0].zero_();
  const SmallHeads heads(6);
  EXPECT_TRUE(attention(heads.query, heads.key, heads.value, encoding->terms(6), {}, 0.0)
                  .isfinite()
                  .all()
                  .item<bool>());
}

TEST(PositionFolds, BFloat16StaysNearDouble) {
  torch::manual_seed(8);
  const auto encoding = small_encoding({"tupe-full", {{"temperature", "per-head"}}});
  const SmallHeads heads(8);
  const Tensor exact = attention(heads.query, heads.key, heads.value, encoding->terms(8), {}, 0.0);
  encoding->to(torch::kBFloat16);
  const Tensor rough = attention(heads.query.to(torch::kBFloat16), heads.key.to(torch::kBFloat16),
                                 heads.value.to(torch::kBFloat16), encoding->terms(8), {}, 0.0);
  EXPECT_TRUE(near(rough, exact, 3e-2 * std::max(1.0, exact.abs().max().item<double>())));
}

TEST(TupeRelative, ClsQueriesFeelNoPositionAndInertRowsGetNoGradient) {
  torch::manual_seed(4);
  const auto encoding = small_encoding({"tupe-r", {}});
  const SmallHeads heads(7);
  const AttentionTerms terms = encoding->terms(7);
  attention(heads.query, heads.key, heads.value, terms, {}, 0.0).pow(3).sum().backward();
  EXPECT_EQ(terms.bias.select(1, 0).std(-1).max().item<double>(), 0.0);
  const auto parameters = encoding->named_parameters();
  EXPECT_LT(parameters["pos.weight"].grad()[0].abs().max().item<double>(), 1e-15);
  const Tensor relative = parameters["relative_attention_bias.weight"].grad();
  EXPECT_LT(relative[16].abs().max().item<double>(), 1e-15);
  EXPECT_GT(relative[32].abs().max().item<double>(), 1e-6);
  EXPECT_TRUE(near(relative.sum(0), torch::zeros({kSmallHeads}), 1e-13));
}

TEST(TupeFull, TableGradientSumsToZeroOverItsRows) {
  torch::manual_seed(4);
  const auto encoding = small_encoding({"tupe-full", {}});
  const SmallHeads heads(7);
  attention(heads.query, heads.key, heads.value, encoding->terms(7), {}, 0.0)
      .pow(3)
      .sum()
      .backward();
  const Tensor gradient = encoding->named_parameters()["rel_pos_bias.weight"].grad();
  EXPECT_TRUE(near(gradient.sum(0), torch::zeros({kSmallHeads}), 1e-13));
}

TEST(TupeFull, RefusesWhatDoesNotFitTogether) {
  EXPECT_THROW(small_encoding({"tupe-full", {{"temperature_cc", "true"}}}), std::invalid_argument);
  EXPECT_THROW(small_encoding({"tupe-full", {{"pos_dim", "7"}}}), std::invalid_argument);
  EXPECT_NO_THROW(small_encoding({"tupe-full", {{"pos_dim", "7"}, {"pos_init", "normal"}}}));
}

}  // namespace
}  // namespace tupelo::position_folds_test
