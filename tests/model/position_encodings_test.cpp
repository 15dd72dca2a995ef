// What every row of the table of encodings must do, in its default form and with each value of each
// option.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cctype>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/attention.h"
#include "model/position/position_encoding.h"
#include "tests/model/formulas.h"
#include "tests/model/tiny_model.h"

namespace tupelo {
namespace {

using torch::Tensor;

struct Variant {
  std::string name;
  PositionOptions options;

  std::string plan_entry() const {
    std::string text;
    for (const auto& [option, value] : options) {
      text += (text.empty() ? "(" : ",") + option + "=" + value;
    }
    return name + (text.empty() ? "" : text + ")");
  }
};

void PrintTo(const Variant& variant, std::ostream* stream) { *stream << variant.plan_entry(); }

// Options that only mean something beside others.
PositionOptions companions(const std::string& option) {
  if (option == "temperature_cc") return {{"temperature", "per-head"}};
  if (option == "max_distance" || option == "rel_bins") return {{"rel", "t5"}};
  return {};
}

std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  for (const PositionEncodingKind& kind : position_encoding_kinds()) {
    variants.push_back({kind.name, {}});
    for (const PositionOptionKind& option : kind.options) {
      const auto values = option.values.empty()
                              ? std::vector<std::string>{std::to_string(option.minimum + 8)}
                              : option.values;
      for (const std::string& value : values) {
        if (value == option.default_value) continue;
        Variant variant{kind.name, {{option.name, value}}};
        for (const auto& companion : companions(option.name)) {
          const bool known = std::any_of(kind.options.begin(), kind.options.end(),
                                         [&](const auto& o) { return o.name == companion.first; });
          if (known) variant.options.push_back(companion);
        }
        variants.push_back(variant);
      }
    }
  }
  // Combinations with a cancellation or a form of their own.
  variants.push_back({"tupe-a", {{"theta", "none"}, {"fold", "concat"}}});
  variants.push_back({"tupe-a", {{"theta", "paper"}, {"fold", "concat"}}});
  for (const std::string pp : {"relative", "dot", "both", "none"}) {
    for (const std::string fold : {"add", "concat"}) {
      variants.push_back({"tupe-full",
                          {{"pp", pp},
                           {"temperature", "per-head"},
                           {"temperature_cc", "true"},
                           {"cls_untie", "true"},
                           {"fold", fold}}});
    }
  }
  variants.push_back({"tupe-full", {{"pp", "both"}, {"temperature", "shared"}}});
  variants.push_back({"tupe-full", {{"pp", "dot"}, {"fold", "concat"}}});
  variants.push_back({"tupe-full", {{"rel_range", "3"}}});
  return variants;
}

constexpr std::int64_t kHeads = 3, kWidth = 4, kLongest = 9;

std::shared_ptr<PositionEncoding> make(const Variant& variant,
                                       torch::ScalarType type = torch::kFloat64) {
  PositionContext context;
  context.heads = kHeads;
  context.head_width = kWidth;
  context.max_positions = kLongest;
  const auto encoding = make_position_encoding(variant.name, context, variant.options);
  encoding->initialize(0.3, at::make_generator<at::CPUGeneratorImpl>(11));
  encoding->to(type);
  perturb(*encoding, 0.2);
  return encoding;
}

struct Heads {
  explicit Heads(std::int64_t tokens, std::int64_t batch = 2)
      : query(torch::randn({batch, kHeads, tokens, kWidth}, torch::kFloat64)),
        key(torch::randn_like(query)),
        value(torch::randn_like(query)) {}
  Tensor query, key, value;
};

bool has_option(const Variant& variant, const std::string& name, const std::string& value) {
  const auto& options = variant.options;
  return std::find(options.begin(), options.end(), std::pair(name, value)) != options.end();
}

// The position key's bias adds a constant to each row of scores, which a softmax cannot feel,
// unless [CLS]'s column is an exception.
bool is_inert(const Variant& variant, const std::string& parameter) {
  if (parameter == "k_pos.bias") {
    return !has_option(variant, "cls_untie", "true");
  }
  return parameter == "pos_k_linear.bias" && has_option(variant, "theta", "none");
}

class EveryEncoding : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override { torch::manual_seed(17); }
};

TEST_P(EveryEncoding, FollowsTheAttentionFormulaAtEveryLength) {
  const auto encoding = make(GetParam());
  for (const std::int64_t tokens : {1, 2, 5, 8, 9}) {
    const AttentionTerms terms = encoding->terms(tokens);
    EXPECT_GT(terms.scale, 0.0);
    const Heads heads(tokens);
    const Tensor result = attention(heads.query, heads.key, heads.value, terms, {}, 0.0);
    EXPECT_TRUE(
        near(result, plain_attention(heads.query, heads.key, heads.value, terms, {}), 1e-12));
    if (terms.bias.defined()) {
      EXPECT_EQ(terms.bias.sizes(), (at::IntArrayRef{kHeads, tokens, tokens}));
    }
  }
}

TEST_P(EveryEncoding, RefusesALongerSequenceNamingBothLengths) {
  const auto encoding = make(GetParam());
  try {
    encoding->terms(kLongest + 1);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("10 tokens"), std::string::npos) << what;
    EXPECT_NE(what.find("9 positions"), std::string::npos) << what;
    EXPECT_NE(what.find(GetParam().name), std::string::npos) << what;
  }
}

TEST_P(EveryEncoding, ShorterSequencesSeeTheSameTerms) {
  const auto encoding = make(GetParam());
  const AttentionTerms whole = encoding->terms(8), part = encoding->terms(5);
  const Heads heads(8);
  const auto first = [](const Tensor& tensor) { return tensor.narrow(2, 0, 5); };
  const Tensor scores = plain_scores(heads.query, heads.key, whole);
  EXPECT_TRUE(near(plain_scores(first(heads.query), first(heads.key), part),
                   scores.narrow(2, 0, 5).narrow(3, 0, 5), 1e-12));
}

TEST_P(EveryEncoding, PaddingChangesNothing) {
  const auto encoding = make(GetParam());
  const Heads heads(8, 1);
  const auto first = [](const Tensor& tensor) { return tensor.narrow(2, 0, 5); };
  Tensor mask = torch::ones({1, 8}, torch::kBool);
  mask.narrow(1, 5, 3).fill_(false);
  const Tensor padded =
      attention(heads.query, heads.key, heads.value, encoding->terms(8), mask, 0.0);
  const Tensor alone = attention(first(heads.query), first(heads.key), first(heads.value),
                                 encoding->terms(5), {}, 0.0);
  EXPECT_TRUE(near(first(padded), alone, 1e-12));
}

TEST_P(EveryEncoding, TellsPositionsApart) {
  const auto encoding = make(GetParam());
  // Equal contents everywhere: whatever differs between keys is position.
  const Tensor content = torch::randn({1, kHeads, 1, kWidth}, torch::kFloat64);
  const Tensor scores = plain_scores(content.expand({1, kHeads, 6, kWidth}),
                                     content.expand({1, kHeads, 6, kWidth}), encoding->terms(6));
  const Tensor inner = scores.narrow(3, 1, 5);
  EXPECT_GT(inner.std(-1).min().item<double>() + inner.std(2).max().item<double>(), 1e-3);
  EXPECT_GT(inner.select(2, 3).std(-1).min().item<double>(), 1e-4);
}

TEST_P(EveryEncoding, RowsOfTheBiasGradientSumToZero) {
  AttentionTerms terms = make(GetParam())->terms(7);
  if (!terms.bias.defined()) return;
  terms.bias.retain_grad();
  const Heads heads(7);
  attention(heads.query, heads.key, heads.value, terms, {}, 0.0).square().sum().backward();
  EXPECT_TRUE(near(terms.bias.grad().sum(-1), torch::zeros({kHeads, 7}), 1e-13));
}

TEST_P(EveryEncoding, EveryParameterGetsAGradient) {
  const auto encoding = make(GetParam());
  const Heads heads(kLongest);
  attention(heads.query, heads.key, heads.value, encoding->terms(kLongest), {}, 0.0)
      .pow(3)
      .sum()
      .backward();
  for (const auto& parameter : encoding->named_parameters()) {
    const Tensor gradient = parameter.value().grad();
    ASSERT_TRUE(gradient.defined()) << parameter.key();
    EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << parameter.key();
    const double largest = gradient.abs().max().item<double>();
    if (is_inert(GetParam(), parameter.key())) {
      EXPECT_LT(largest, 1e-12) << parameter.key();
    } else {
      EXPECT_GT(largest, 1e-6) << parameter.key();
    }
  }
}

TEST_P(EveryEncoding, InitialValuesAreAFunctionOfTheGenerator) {
  const auto first = make(GetParam()), second = make(GetParam());
  const auto generator = [](std::uint64_t seed) {
    return at::make_generator<at::CPUGeneratorImpl>(seed);
  };
  first->initialize(0.02, generator(4));
  torch::randn({100});
  second->initialize(0.02, generator(4));
  const auto expected = second->named_parameters();
  for (const auto& parameter : first->named_parameters()) {
    EXPECT_TRUE(parameter.value().equal(expected[parameter.key()])) << parameter.key();
    const bool is_bias = parameter.key().find("bias") == parameter.key().size() - 4;
    if (is_bias) {
      EXPECT_EQ(parameter.value().abs().max().item<double>(), 0.0) << parameter.key();
    }
  }
}

TEST_P(EveryEncoding, UndecayedNamesAreParametersAndCoverAllVectors) {
  const auto encoding = make(GetParam());
  const auto undecayed = encoding->undecayed_parameters();
  const auto parameters = encoding->named_parameters();
  for (const std::string& name : undecayed) {
    EXPECT_NE(parameters.find(name), nullptr) << name;
  }
  for (const auto& parameter : parameters) {
    if (parameter.value().dim() > 1) continue;
    EXPECT_EQ(std::count(undecayed.begin(), undecayed.end(), parameter.key()), 1)
        << parameter.key();
  }
}

TEST_P(EveryEncoding, WorksInLowerPrecision) {
  for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
    const auto encoding = make(GetParam(), type);
    const Heads heads(7);
    const AttentionTerms terms = encoding->terms(7);
    if (terms.bias.defined()) {
      EXPECT_EQ(terms.bias.scalar_type(), torch::kFloat32);
    }
    const Tensor result =
        attention(heads.query.to(type), heads.key.to(type), heads.value.to(type), terms, {}, 0.0);
    EXPECT_EQ(result.scalar_type(), type);
    result.sum().backward();
    encoding->to(torch::kFloat64);
    const Tensor exact =
        attention(heads.query, heads.key, heads.value, encoding->terms(7), {}, 0.0);
    EXPECT_TRUE(near(result, exact, type == torch::kFloat32 ? 1e-5 : 0.15));
  }
}

// Central differences along a random direction, through a whole model whose two layers share the
// encoding.
TEST_P(EveryEncoding, ModelGradientsEqualFiniteDifferences) {
  const auto model = tiny_model(tiny_options("all:" + GetParam().plan_entry()));
  perturb(*model, 0.1);
  TinyBatch batch(3, 7);
  batch.pad(2);
  batch.loss(*model).backward();
  for (const auto& parameter : model->named_parameters()) {
    if (parameter.key().find("roberta.position.") != 0) continue;
    Tensor value = parameter.value();
    const Tensor direction = torch::randn_like(value);
    const double expected = (value.grad() * direction).sum().item<double>();
    const auto loss_at = [&](double step) {
      torch::NoGradGuard no_grad;
      value.add_(direction, step);
      const double loss = batch.loss(*model).item<double>();
      value.sub_(direction, step);
      return loss;
    };
    constexpr double kStep = 1e-5;
    const double measured = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
    EXPECT_NEAR(measured, expected, 1e-6 * std::max(1.0, std::abs(expected))) << parameter.key();
  }
}

std::string test_name(const testing::TestParamInfo<Variant>& tested) {
  std::string name;
  for (const char letter : tested.param.plan_entry()) {
    name += std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryEncoding, testing::ValuesIn(all_variants()), test_name);

// Folds: two ways into the kernel, one result.
TEST(PositionFolds, AgreeForEverySettingOfTupeFull) {
  torch::manual_seed(2);
  for (const std::string pp : {"relative", "dot", "both", "none"}) {
    for (const std::string temperature : {"none", "shared", "per-head"}) {
      for (const std::string untie : {"false", "true"}) {
        Variant variant{"tupe-full",
                        {{"pp", pp}, {"temperature", temperature}, {"cls_untie", untie}}};
        variant.options.emplace_back("fold", "add");
        const auto added = make(variant);
        variant.options.back().second = "concat";
        const auto concatenated = make(variant);
        torch::NoGradGuard no_grad;
        for (const auto& parameter : added->named_parameters()) {
          concatenated->named_parameters()[parameter.key()].copy_(parameter.value());
        }
        const Heads heads(8);
        EXPECT_TRUE(near(plain_scores(heads.query, heads.key, added->terms(8)),
                         plain_scores(heads.query, heads.key, concatenated->terms(8)), 1e-12))
            << variant.plan_entry();
      }
    }
  }
}

TEST(PositionFolds, PlainSumOfAllFourNeedsNoBias) {
  EXPECT_FALSE(make({"tupe-full", {{"pp", "dot"}}})->terms(5).bias.defined());
}

TEST(PositionFolds, VanishingContentTemperatureIsExactByConcatenation) {
  const auto encoding = make(
      {"tupe-full", {{"pp", "both"}, {"temperature", "per-head"}, {"temperature_cc", "true"}}});
  torch::NoGradGuard no_grad;
  encoding->named_parameters()["temperature"][0].zero_();
  const Heads heads(6);
  EXPECT_TRUE(attention(heads.query, heads.key, heads.value, encoding->terms(6), {}, 0.0)
                  .isfinite()
                  .all()
                  .item<bool>());
}

TEST(PositionFolds, BFloat16StaysNearDouble) {
  torch::manual_seed(8);
  const auto encoding = make({"tupe-full", {{"temperature", "per-head"}}});
  const Heads heads(8);
  const Tensor exact = attention(heads.query, heads.key, heads.value, encoding->terms(8), {}, 0.0);
  encoding->to(torch::kBFloat16);
  const Tensor rough = attention(heads.query.to(torch::kBFloat16), heads.key.to(torch::kBFloat16),
                                 heads.value.to(torch::kBFloat16), encoding->terms(8), {}, 0.0);
  EXPECT_TRUE(near(rough, exact, 3e-2 * std::max(1.0, exact.abs().max().item<double>())));
}

TEST(TupeRelative, ClsQueriesFeelNoPositionAndInertRowsGetNoGradient) {
  torch::manual_seed(4);
  const auto encoding = make({"tupe-r", {}});
  const Heads heads(7);
  const AttentionTerms terms = encoding->terms(7);
  attention(heads.query, heads.key, heads.value, terms, {}, 0.0).pow(3).sum().backward();
  EXPECT_EQ(terms.bias.select(1, 0).std(-1).max().item<double>(), 0.0);
  const auto parameters = encoding->named_parameters();
  EXPECT_LT(parameters["pos.weight"].grad()[0].abs().max().item<double>(), 1e-15);
  const Tensor relative = parameters["relative_attention_bias.weight"].grad();
  EXPECT_LT(relative[16].abs().max().item<double>(), 1e-15);
  EXPECT_GT(relative[32].abs().max().item<double>(), 1e-6);
  EXPECT_TRUE(near(relative.sum(0), torch::zeros({kHeads}), 1e-13));
}

TEST(TupeFull, TableGradientSumsToZeroOverItsRows) {
  torch::manual_seed(4);
  const auto encoding = make({"tupe-full", {}});
  const Heads heads(7);
  attention(heads.query, heads.key, heads.value, encoding->terms(7), {}, 0.0)
      .pow(3)
      .sum()
      .backward();
  const Tensor gradient = encoding->named_parameters()["rel_pos_bias.weight"].grad();
  EXPECT_TRUE(near(gradient.sum(0), torch::zeros({kHeads}), 1e-13));
}

TEST(TupeFull, RefusesWhatDoesNotFitTogether) {
  EXPECT_THROW(make({"tupe-full", {{"temperature_cc", "true"}}}), std::invalid_argument);
  EXPECT_THROW(make({"tupe-full", {{"pos_dim", "7"}}}), std::invalid_argument);
  EXPECT_NO_THROW(make({"tupe-full", {{"pos_dim", "7"}, {"pos_init", "normal"}}}));
}

TEST(EncodingTable, NamesAliasesAndHelp) {
  EXPECT_EQ(position_encoding_kind("article").name, "tupe-full");
  EXPECT_THROW(position_encoding_kind("none"), std::invalid_argument);
  for (const PositionEncodingKind& kind : position_encoding_kinds()) {
    EXPECT_FALSE(kind.summary.empty());
    ASSERT_EQ(kind.option_help.size(), kind.options.size());
    for (std::size_t i = 0; i < kind.options.size(); ++i) {
      EXPECT_EQ(kind.option_help[i].rfind(kind.options[i].name + "=", 0), 0u);
    }
  }
  EXPECT_EQ(position_encoding_kind("tupe-full")
                .option_help[0]
                .rfind("pp=relative|dot|both|none (relative): ", 0),
            0u);
}

}  // namespace
}  // namespace tupelo
