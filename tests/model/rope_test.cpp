// Properties of rotations that reference vectors do not show.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>

#include "model/position/position_encoding.h"
#include "model/position/rotation_frequencies.h"
#include "tests/model/formulas.h"
#include "tests/model/small_encodings.h"

namespace tupelo::rope_test {
namespace {

using torch::Tensor;

// Without a scaling there is nothing that a factor would stretch.
PositionOptions scaled(const std::string& method, const std::string& factor) {
  if (method == "none") return {};
  return {{"scaling", method}, {"factor", factor}};
}

TEST(Rope, ScoresDependOnTheDistanceAlone) {
  torch::manual_seed(6);
  for (const std::string layout : {"interleaved", "half"}) {
    for (const std::string scaling : {"none", "pi", "ntk", "ntk-mixed", "yarn"}) {
      PositionOptions options = scaled(scaling, "4");
      options.emplace_back("layout", layout);
      const AttentionTerms terms = make("rope", options)->terms(20);
      const Tensor query = random_heads(1).expand({2, kHeads, 20, kWidth});
      const Tensor key = random_heads(1).expand({2, kHeads, 20, kWidth});
      const Tensor scores = plain_scores(query, key, terms);
      EXPECT_TRUE(near(scores.narrow(2, 7, 13).narrow(3, 7, 13),
                       scores.narrow(2, 0, 13).narrow(3, 0, 13), 1e-12));
      EXPECT_GT(scores.select(2, 9).std(-1).min().item<double>(), 1e-3);
    }
  }
}

TEST(Rope, ValuesAreTurnedOnRequestOnly) {
  EXPECT_FALSE(make("rope")->terms(3).rotate_values);
  EXPECT_TRUE(make("rope", {{"rotary_value", "true"}})->terms(3).rotate_values);
}

TEST(Rope, AnglesAreThoseOfDoublePrecisionFarOut) {
  const auto encoding = make("rope");
  encoding->to(torch::kBFloat16);
  const AttentionTerms terms = encoding->terms(512);
  EXPECT_NEAR(terms.rotation_cos[511][1].item<double>(), std::cos(511 * 0.01), 1e-6);
  EXPECT_NEAR(terms.rotation_sin[511][0].item<double>(), std::sin(511.0), 1e-6);
}

TEST(Rope, RefusesAnOddWidthNamingHiddenSizeAndHeads) {
  for (const std::string name : {"rope", "nezha"}) {
    try {
      make(name, {}, context_of(2, 5));
      FAIL() << "accepted";
    } catch (const std::invalid_argument& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find(name), std::string::npos) << what;
      EXPECT_NE(what.find("10"), std::string::npos) << what;
      EXPECT_NE(what.find("2 heads"), std::string::npos) << what;
    }
  }
}

TEST(Rope, RefusesAFactorThatShortensAndUnknownExtensions) {
  EXPECT_THROW(make("rope", {{"scaling", "pi"}, {"factor", "0.5"}}), std::invalid_argument);
  EXPECT_THROW(make("rope", {{"factor", "2"}}), std::invalid_argument);  // nothing to stretch
  PositionContext context = context_of();
  context.extension.rotation.method = "yarm";
  try {
    make("rope", {}, context);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("yarn"), std::string::npos) << error.what();
  }
}

void expect_same_rotation(const AttentionTerms& left, const AttentionTerms& right) {
  EXPECT_TRUE(left.rotation_cos.equal(right.rotation_cos));
  EXPECT_TRUE(left.rotation_sin.equal(right.rotation_sin));
}

TEST(Rope, ExtensionActsBeyondTheTrainedLengthOnly) {
  for (const std::string& method : rotation_scaling_names()) {
    PositionContext context = context_of();
    context.extension.rotation.method = method;
    const auto extended = make("rope", {}, context);
    expect_same_rotation(extended->terms(kLongest), make("rope")->terms(kLongest));
    const auto twice = make("rope", scaled(method, "2"))->terms(2 * kLongest);
    expect_same_rotation(extended->terms(2 * kLongest), twice);
    // Nothing of the long sequence is left behind.
    expect_same_rotation(extended->terms(4), make("rope")->terms(4));

    context.extension.rotation.factor = 3.0;
    const auto thrice = make("rope", scaled(method, "3"))->terms(kLongest + 1);
    expect_same_rotation(make("rope", {}, context)->terms(kLongest + 1), thrice);
  }
}

TEST(Rope, ExtensionReplacesTheModelsOwnScaling) {
  PositionContext context = context_of();
  context.extension.rotation = {"pi", 2.0};
  const PositionOptions own = {{"scaling", "ntk"}, {"factor", "4"}};
  const auto extended = make("rope", own, context);
  expect_same_rotation(extended->terms(kLongest), make("rope", own)->terms(kLongest));
  expect_same_rotation(extended->terms(kLongest + 1),
                       make("rope", {{"scaling", "pi"}, {"factor", "2"}})->terms(kLongest + 1));
}

TEST(Rope, TrainedLengthIsAnOption) {
  const auto dynamic = [](const std::string& trained) {
    return make("rope", {{"scaling", "ntk-dynamic"}, {"orig", trained}})->terms(8);
  };
  expect_same_rotation(dynamic("8"), make("rope")->terms(8));
  EXPECT_FALSE(dynamic("4").rotation_cos.equal(make("rope")->terms(8).rotation_cos));
}

TEST(RotationFrequencies, FixedPointsOfTheScalings) {
  const auto radians = [](const std::string& scaling, double factor, std::int64_t trained = 512) {
    return rotation_frequencies({32, 10000.0, scaling, factor, trained}, 2048).radians;
  };
  const auto plain = radians("none", 1.0);
  EXPECT_DOUBLE_EQ(plain.front(), 1.0);
  EXPECT_DOUBLE_EQ(radians("ntk", 4.0).front(), plain.front());
  EXPECT_NEAR(radians("ntk", 4.0).back(), plain.back() / 4.0, 1e-15);
  EXPECT_NEAR(radians("ntk-mixed", 4.0).back(), plain.back() / 4.0, 1e-15);
  EXPECT_NEAR(radians("ntk-fixed", 4.0).back(), plain.back() / 4.0, 1e-15);
  EXPECT_DOUBLE_EQ(radians("yarn", 4.0).front(), plain.front());
  EXPECT_DOUBLE_EQ(radians("yarn", 4.0).back(), plain.back() / 4.0);
  for (const std::string& scaling : rotation_scaling_names()) {
    if (scaling == "ntk-dynamic") continue;
    const auto as_before = radians(scaling, 1.0);
    for (std::size_t pair = 0; pair < plain.size(); ++pair) {
      EXPECT_DOUBLE_EQ(as_before[pair], plain[pair]) << scaling;
    }
    for (const double value : radians(scaling, 2.0, 3)) {
      EXPECT_TRUE(std::isfinite(value) && value > 0.0 && value <= 1.0) << scaling;
    }
  }
}

}  // namespace
}  // namespace tupelo::rope_test
