// Gates, rotated contents and reports of the TUPE family.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/attention.h"
#include "model/position/position_encoding.h"
#include "model/position/toeplitz.h"
#include "tests/model/formulas.h"

namespace tupelo::tupe_options_test {
namespace {

using torch::Tensor;

constexpr std::int64_t kHeads = 3, kWidth = 4, kLongest = 9, kTokens = 7;

PositionContext context() {
  PositionContext context;
  context.heads = kHeads;
  context.head_width = kWidth;
  context.max_positions = kLongest;
  return context;
}

std::shared_ptr<PositionEncoding> make(const std::string& name, const PositionOptions& options,
                                       torch::ScalarType type = torch::kFloat64) {
  const auto encoding = make_position_encoding(name, context(), options);
  encoding->initialize(0.3, at::make_generator<at::CPUGeneratorImpl>(11));
  encoding->to(type);
  return encoding;
}

PositionOptions with(PositionOptions options, const std::string& name, const std::string& value) {
  options.emplace_back(name, value);
  return options;
}

void copy_values(const PositionEncoding& from, PositionEncoding& to) {
  torch::NoGradGuard no_grad;
  const auto values = from.named_parameters();
  for (auto& parameter : to.named_parameters()) {
    if (values.contains(parameter.key())) parameter.value().copy_(values[parameter.key()]);
  }
}

struct Heads {
  Heads() {
    torch::manual_seed(31);
    query = torch::randn({2, kHeads, kTokens, kWidth}, torch::kFloat64);
    key = torch::randn_like(query);
    value = torch::randn_like(query);
  }
  Tensor attend(const AttentionTerms& terms) const {
    return attention(query, key, value, terms, {}, 0.0);
  }
  Tensor query, key, value;
};

struct Form {
  std::string name;
  PositionOptions options;
};

std::vector<Form> gated_forms() {
  std::vector<Form> forms;
  for (const std::string theta : {"official", "paper", "none"}) {
    forms.push_back({"tupe-a", {{"theta", theta}}});
    forms.push_back({"tupe-a", {{"theta", theta}, {"fold", "concat"}}});
    forms.push_back({"tupe-r", {{"theta", theta}}});
  }
  return forms;
}

TEST(TupeGate, IsNothingAtFirst) {
  for (const Form& form : gated_forms()) {
    const auto plain = make(form.name, form.options);
    const auto gated = make(form.name, with(form.options, "gate", "per-head"));
    EXPECT_EQ(gated->named_parameters()["gate"].sizes(), (at::IntArrayRef{kHeads}));
    const auto plain_terms = plain->terms(kTokens).tensors();
    const auto gated_terms = gated->terms(kTokens).tensors();
    ASSERT_EQ(plain_terms.size(), gated_terms.size());
    for (std::size_t i = 0; i < plain_terms.size(); ++i) {
      EXPECT_TRUE(plain_terms[i].equal(gated_terms[i])) << form.name;
    }
  }
}

TEST(TupeGate, ScalesAllThatPositionsSay) {
  const Heads heads;
  for (const Form& form : gated_forms()) {
    const auto plain = make(form.name, form.options);
    perturb(*plain, 0.2);
    const auto gated = make(form.name, with(form.options, "gate", "per-head"));
    copy_values(*plain, *gated);
    const Tensor gate = torch::tensor({-1.5, 0.3, 4.0}, torch::kFloat64);
    {
      torch::NoGradGuard no_grad;
      gated->named_parameters()["gate"].copy_(gate);
    }
    const Tensor factors = (2.0 / (1.0 + (-gate).exp())).view({-1, 1, 1});
    // Contents that are zero leave the position part of the scores.
    const Tensor zeros = torch::zeros_like(heads.query);
    EXPECT_TRUE(near(attention_scores(zeros, zeros, gated->terms(kTokens), {}),
                     attention_scores(zeros, zeros, plain->terms(kTokens), {}) * factors, 1e-12))
        << form.name;
    EXPECT_TRUE(near(attention_scores(heads.query, heads.key, gated->terms(kTokens), {}) -
                         attention_scores(zeros, zeros, gated->terms(kTokens), {}),
                     attention_scores(heads.query, heads.key, plain->terms(kTokens), {}) -
                         attention_scores(zeros, zeros, plain->terms(kTokens), {}),
                     1e-12))
        << form.name;
  }
}

TEST(TupeGate, FoldsAgree) {
  const Heads heads;
  for (const std::string theta : {"official", "paper", "none"}) {
    const PositionOptions options = {{"theta", theta}, {"gate", "per-head"}};
    const auto biased = make("tupe-a", options);
    perturb(*biased, 0.4);
    const auto concatenated = make("tupe-a", with(options, "fold", "concat"));
    copy_values(*biased, *concatenated);
    EXPECT_TRUE(near(heads.attend(biased->terms(kTokens)),
                     heads.attend(concatenated->terms(kTokens)), 1e-12));
  }
}

TEST(TupeGate, IsTrainedWithoutDecay) {
  const Heads heads;
  for (const Form& form : gated_forms()) {
    const auto gated = make(form.name, with(form.options, "gate", "per-head"));
    const auto undecayed = gated->undecayed_parameters();
    EXPECT_EQ(std::count(undecayed.begin(), undecayed.end(), "gate"), 1);
    Tensor gate = gated->named_parameters()["gate"];
    const auto loss = [&] { return heads.attend(gated->terms(kTokens)).pow(3).sum(); };
    loss().backward();
    const Tensor gradient = gate.grad().clone();
    torch::NoGradGuard no_grad;
    for (std::int64_t head = 0; head < kHeads; ++head) {
      const auto loss_at = [&](double value) {
        gate[head].fill_(value);
        return loss().item<double>();
      };
      const double measured = (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5;
      gate.zero_();
      EXPECT_NEAR(gradient[head].item<double>(), measured, 1e-8) << form.name;
      EXPECT_GT(std::abs(measured), 1e-6) << form.name;
    }
  }
}

TEST(TupeGate, HalfPrecisionTermsHaveOneType) {
  const auto gated = make("tupe-a", {{"gate", "per-head"}, {"fold", "concat"}}, torch::kBFloat16);
  const AttentionTerms terms = gated->terms(kTokens);
  EXPECT_EQ(terms.query_extra.scalar_type(), torch::kBFloat16);
  EXPECT_EQ(terms.key_extra.scalar_type(), torch::kBFloat16);
  const auto biased = make("tupe-r", {{"gate", "per-head"}}, torch::kBFloat16);
  EXPECT_EQ(biased->terms(kTokens).bias.scalar_type(), torch::kFloat32);
}

std::vector<Form> rotated_forms() {
  return {{"tupe-a", {}},
          {"tupe-a", {{"fold", "concat"}}},
          {"tupe-r", {}},
          {"tupe-r", {{"gate", "per-head"}}},
          {"tupe-full", {{"pos_dim", "6"}}},
          {"tupe-full", {{"pos_dim", "6"}, {"fold", "concat"}}},
          {"tupe-full", {{"pos_dim", "6"}, {"pp", "both"}, {"temperature", "per-head"}}}};
}

// Turning q and k beforehand, pair (2m, 2m+1) by t 10000^(-2m/D), and adding plain terms.
Tensor turned(const Tensor& head) {
  const std::int64_t tokens = head.size(2), pairs = head.size(3) / 2;
  Tensor result = torch::empty_like(head);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t m = 0; m < pairs; ++m) {
      const double angle =
          static_cast<double>(t) * std::pow(10000.0, -2.0 * static_cast<double>(m) / head.size(3));
      const Tensor a = head.select(2, t).select(2, 2 * m),
                   b = head.select(2, t).select(2, 2 * m + 1);
      result.select(2, t).select(2, 2 * m).copy_(a * std::cos(angle) - b * std::sin(angle));
      result.select(2, t).select(2, 2 * m + 1).copy_(a * std::sin(angle) + b * std::cos(angle));
    }
  }
  return result;
}

TEST(TupeContent, RotatesContentsAndNothingElse) {
  const Heads heads;
  for (const Form& form : rotated_forms()) {
    const auto plain = make(form.name, form.options);
    perturb(*plain, 0.2);
    const auto rotated = make(form.name, with(form.options, "content", "rope"));
    EXPECT_EQ(rotated->parameters().size(), plain->parameters().size());
    copy_values(*plain, *rotated);
    const AttentionTerms plain_terms = plain->terms(kTokens), terms = rotated->terms(kTokens);
    EXPECT_FALSE(plain_terms.rotation_cos.defined());
    const Tensor expected =
        attention_scores(turned(heads.query), turned(heads.key), plain_terms, {});
    EXPECT_TRUE(near(attention_scores(heads.query, heads.key, terms, {}), expected, 1e-12))
        << form.name;
    EXPECT_FALSE(near(attention_scores(heads.query, heads.key, plain_terms, {}), expected, 1e-3));
    EXPECT_TRUE(
        near(heads.attend(terms), torch::matmul(torch::softmax(expected, -1), heads.value), 1e-12))
        << form.name;
  }
}

TEST(TupeContent, NeedsEvenHeads) {
  PositionContext odd = context();
  odd.head_width = 5;
  for (const std::string name : {"tupe-a", "tupe-r", "tupe-full"}) {
    EXPECT_THROW(make_position_encoding(name, odd, {{"content", "rope"}}), std::invalid_argument);
    EXPECT_NO_THROW(make_position_encoding(name, odd, {}));
  }
}

TEST(TupeFull, RefusesOptionsWithoutEffect) {
  const auto refused = [](const PositionOptions& options) {
    try {
      make_position_encoding("tupe-full", context(), options);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(
      refused({{"rel_bins", "16"}}),
      "position encoding tupe-full: option rel_bins=16 has no effect with rel=table; it belongs "
      "to rel=t5");
  EXPECT_NE(refused({{"max_distance", "64"}}), "");
  EXPECT_NE(refused({{"rel", "t5"}, {"rel_range", "8"}}), "");
  EXPECT_EQ(refused({{"rel", "t5"}, {"rel_bins", "16"}}), "");
  EXPECT_EQ(refused({{"rel_range", "8"}}), "");
  // What is wrong with a value is said in the encoding's name.
  EXPECT_EQ(refused({{"rel", "t5"}, {"rel_bins", "7"}}).rfind("position encoding tupe-full: ", 0),
            0u);
}

TEST(TupePicture, CorrelationOfTupeIsItsBiasUnderEitherFold) {
  for (const std::string theta : {"official", "paper", "none"}) {
    const auto biased = make("tupe-a", {{"theta", theta}});
    const auto concatenated = make("tupe-a", {{"theta", theta}, {"fold", "concat"}});
    torch::NoGradGuard no_grad;
    const PositionPicture picture = biased->picture(kTokens);
    EXPECT_TRUE(picture.correlation.equal(biased->terms(kTokens).bias));
    EXPECT_FALSE(picture.distance_bias.defined());
    EXPECT_TRUE(concatenated->picture(kTokens).correlation.equal(picture.correlation));
  }
}

TEST(TupePicture, TupeRelativeSeparatesTheBiasOfTheDistance) {
  for (const std::string theta : {"official", "paper", "none"}) {
    const auto encoding = make("tupe-r", {{"theta", theta}, {"gate", "per-head"}});
    perturb(*encoding, 0.2);
    torch::NoGradGuard no_grad;
    const PositionPicture picture = encoding->picture(kTokens);
    const Tensor bias = encoding->terms(kTokens).bias;
    ASSERT_EQ(picture.distance_bias.sizes(), (at::IntArrayRef{kHeads, 2 * kTokens - 1}));
    Tensor expected = picture.correlation + toeplitz(picture.distance_bias);
    EXPECT_GT(picture.distance_bias.abs().max().item<double>(), 1e-2);
    if (theta != "none") {
      // What [CLS] says and hears does not depend on the distance.
      expected.select(1, 0).copy_(picture.correlation.select(1, 0));
      expected.select(2, 0).copy_(picture.correlation.select(2, 0));
    }
    EXPECT_TRUE(near(bias, expected, 1e-12)) << theta;
  }
}

TEST(TupePicture, TupeFullShowsWhatStandsForPositionToPosition) {
  for (const std::string fold : {"add", "concat"}) {
    for (const std::string pp : {"relative", "dot", "both", "none"}) {
      for (const std::string untie : {"false", "true"}) {
        const auto encoding = make("tupe-full", {{"pos_dim", "6"},
                                                 {"pp", pp},
                                                 {"temperature", "per-head"},
                                                 {"cls_untie", untie},
                                                 {"fold", fold}});
        perturb(*encoding, 0.2);
        torch::NoGradGuard no_grad;
        const PositionPicture picture = encoding->picture(kTokens);
        EXPECT_EQ(picture.correlation.defined(), pp == "dot" || pp == "both");
        EXPECT_EQ(picture.distance_bias.defined(), pp == "relative" || pp == "both");
        // Without contents only position-to-position remains.
        const Tensor zeros = torch::zeros({1, kHeads, kTokens, kWidth}, torch::kFloat64);
        const Tensor scores = attention_scores(zeros, zeros, encoding->terms(kTokens), {})[0];
        Tensor expected = torch::zeros_like(scores);
        if (picture.distance_bias.defined()) expected += toeplitz(picture.distance_bias);
        if (picture.correlation.defined()) expected += picture.correlation;
        const std::int64_t first = untie == "true" ? 1 : 0, rest = kTokens - first;
        const auto inner = [&](const Tensor& all) {
          return all.narrow(1, first, rest).narrow(2, first, rest);
        };
        EXPECT_TRUE(near(inner(scores), inner(expected), 1e-12)) << pp << " " << fold;
        if (untie == "true" && picture.correlation.defined()) {
          EXPECT_TRUE(near(picture.correlation.select(2, 0), scores.select(2, 0), 1e-12));
        }
      }
    }
  }
}

TEST(TupeCost, CountsProjectionsAndProductsOfPositions) {
  constexpr double kHidden = kHeads * kWidth, kRows = kTokens + 1;
  constexpr double kProjections = 2 * 2 * kRows * kHidden * kHidden;
  constexpr double kProducts = 2.0 * kTokens * kTokens * kHidden;
  EXPECT_EQ(make("tupe-a", {})->terms_flops(kTokens), kProjections + kProducts);
  EXPECT_EQ(make("tupe-r", {})->terms_flops(kTokens), kProjections + kProducts);
  EXPECT_EQ(make("tupe-a", {{"fold", "concat"}})->terms_flops(kTokens), kProjections);
  EXPECT_EQ(make("tupe-a", {{"theta", "none"}})->terms_flops(kTokens),
            2 * 2 * kTokens * kHidden * kHidden + kProducts);
  EXPECT_EQ(make("tupe-a", {{"theta", "paper"}})->terms_flops(kTokens),
            2 * 2 * (kTokens + 2) * kHidden * kHidden + kProducts);
  const double wide = 2 * 2 * kTokens * 6 * kHidden;
  EXPECT_EQ(make("tupe-full", {{"pos_dim", "6"}})->terms_flops(kTokens), wide + kProducts);
  EXPECT_EQ(make("tupe-full", {{"pos_dim", "6"}, {"fold", "concat"}})->terms_flops(kTokens), wide);
  EXPECT_EQ(make("tupe-full", {{"pos_dim", "6"}, {"pp", "dot"}})->terms_flops(kTokens), wide);
}

}  // namespace
}  // namespace tupelo::tupe_options_test
