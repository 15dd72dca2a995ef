// What every row of the table of encodings must do, in its default form and with each value of each
// option.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/attention.h"
#include "tests/model/encoding_variants.h"
#include "tests/model/formulas.h"
#include "tests/model/tiny_model.h"

namespace tupelo::position_encodings_test {
namespace {

using torch::Tensor;

bool has_option(const EncodingVariant& variant, const std::string& name, const std::string& value) {
  const auto& options = variant.options;
  return std::find(options.begin(), options.end(), std::pair(name, value)) != options.end();
}

// The position key's bias adds a constant to each row of scores, which a softmax cannot feel,
// unless [CLS]'s column is an exception; so does what all position keys have in common.
bool is_inert(const EncodingVariant& variant, const std::string& parameter) {
  if (parameter == "k_pos.bias") {
    return !has_option(variant, "cls_untie", "true");
  }
  if (parameter == "pos_ln.bias" && variant.name == "deberta-v2") {
    return has_option(variant, "terms", "c2p");
  }
  return parameter == "pos_k_linear.bias" && has_option(variant, "theta", "none");
}

// Attention for one group at the level of heads: rows that a layer would project are taken as they
// are.
AttentionTerms terms_of(PositionEncoding& encoding, std::int64_t tokens) {
  AttentionTerms terms = encoding.terms(tokens);
  if (terms.relative_rows.defined()) {
    const Tensor heads =
        terms.relative_rows.view({terms.relative_rows.size(0), kSmallHeads, kSmallWidth})
            .transpose(0, 1);
    if (terms.relative_rows_as_keys) terms.relative_key = heads;
    if (terms.relative_rows_as_queries) terms.relative_query = heads;
  }
  return terms;
}

std::shared_ptr<RobertaForMaskedLm> model_with(const EncodingVariant& variant,
                                               torch::ScalarType type = torch::kFloat64,
                                               const std::string& recompute = "none") {
  ModelOptions options = tiny_options("all:" + variant.plan_entry());
  options.recompute = recompute;
  const auto model = tiny_model(options, torch::kFloat64);
  torch::manual_seed(23);
  perturb(*model, 0.1);
  model->to(type);
  return model;
}

// Equal where finite, and infinite at the same places.
testing::AssertionResult near_or_blocked(const Tensor& left, const Tensor& right) {
  if (!left.isfinite().equal(right.isfinite())) {
    return testing::AssertionFailure() << "different entries are blocked";
  }
  return near(left.nan_to_num(0, 0, 0), right.nan_to_num(0, 0, 0), 1e-12);
}

class EveryEncoding : public testing::TestWithParam<EncodingVariant> {
 protected:
  void SetUp() override { torch::manual_seed(17); }
};

TEST_P(EveryEncoding, FollowsTheAttentionFormulaAtEveryLength) {
  const auto encoding = small_encoding(GetParam());
  for (const std::int64_t tokens : {1, 2, 5, 8, 9}) {
    const AttentionTerms terms = terms_of(*encoding, tokens);
    EXPECT_GT(terms.scale, 0.0);
    const SmallHeads heads(tokens);
    const Tensor result = attention(heads.query, heads.key, heads.value, terms, {}, 0.0);
    if (!terms.bias_blocks) {  // the plain formula has no rule for queries without keys
      EXPECT_TRUE(
          near(result, plain_attention(heads.query, heads.key, heads.value, terms, {}), 1e-12));
    }
    EXPECT_TRUE(result.isfinite().all().item<bool>());
    if (terms.bias.defined()) {
      EXPECT_EQ(terms.bias.sizes(), (at::IntArrayRef{kSmallHeads, tokens, tokens}));
    }
  }
}

TEST_P(EveryEncoding, GoesBeyondItsTablesOrNamesBothLengths) {
  const auto encoding = small_encoding(GetParam());
  if (encoding->longest() == PositionEncoding::kAnyLength) {
    const SmallHeads heads(2 * kSmallLongest);
    EXPECT_TRUE(attention(heads.query, heads.key, heads.value,
                          terms_of(*encoding, 2 * kSmallLongest), {}, 0.0)
                    .isfinite()
                    .all()
                    .item<bool>());
    return;
  }
  EXPECT_EQ(encoding->longest(), kSmallLongest);
  try {
    encoding->terms(kSmallLongest + 1);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("10 tokens"), std::string::npos) << what;
    EXPECT_NE(what.find("9 positions"), std::string::npos) << what;
    EXPECT_NE(what.find(GetParam().name), std::string::npos) << what;
  }
}

TEST_P(EveryEncoding, ShorterSequencesSeeTheFirstOfTheTerms) {
  const auto encoding = small_encoding(GetParam());
  const AttentionTerms whole = terms_of(*encoding, 8), part = terms_of(*encoding, 5);
  const SmallHeads heads(5);
  EXPECT_TRUE(near_or_blocked(plain_scores(heads.query, heads.key, part),
                              plain_scores(heads.query, heads.key, whole.first(5))));
  EXPECT_TRUE(near(attention(heads.query, heads.key, heads.value, part, {}, 0.0),
                   attention(heads.query, heads.key, heads.value, whole.first(5), {}, 0.0), 1e-12));
}

TEST_P(EveryEncoding, LayersOfAGroupShareOneBias) {
  const auto model = model_with(GetParam());
  const auto terms = model->terms_of_layers(7);
  ASSERT_EQ(terms.size(), 2u);
  EXPECT_EQ(terms[0].bias.defined(), terms[1].bias.defined());
  if (terms[0].bias.defined()) {
    EXPECT_EQ(terms[0].bias.data_ptr(), terms[1].bias.data_ptr());
  }
}

TEST_P(EveryEncoding, PaddingChangesNothing) {
  const auto model = model_with(GetParam());
  TinyBatch batch(3, 8);
  batch.pad(3);
  const Tensor padded = model->hidden_states(batch.input_ids, batch.attention_mask);
  EXPECT_TRUE(padded.isfinite().all().item<bool>());
  const Tensor alone = model->hidden_states(batch.input_ids.narrow(0, 1, 1).narrow(1, 0, 5), {});
  EXPECT_TRUE(near(padded.narrow(0, 1, 1).narrow(1, 0, 5), alone, 1e-11));
  const Tensor other = batch.input_ids.where(batch.attention_mask, batch.input_ids.flip(0));
  EXPECT_TRUE(near(model->hidden_states(other, batch.attention_mask)[1].narrow(0, 0, 5),
                   padded[1].narrow(0, 0, 5), 1e-11));
}

// Every way to pack: documents of many lengths, padding between and behind them.
TEST_P(EveryEncoding, PackedDocumentsEqualDocumentsAlone) {
  const auto model = model_with(GetParam());
  const Tensor documents =
      torch::tensor({{0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 3, 3}, {4, 4, -1, 5, 5, 5, 5, 5, 5, 5, 5, -1}},
                    torch::kInt64);
  const Tensor ids = torch::randint(2, 31, {2, 12}, torch::kInt64);
  const Tensor packed = model->hidden_states(ids, TokenLayout::packed(documents));
  const Tensor cotangent = torch::randn_like(packed);
  (packed * cotangent * documents.ge(0).unsqueeze(-1)).sum().backward();
  const auto together = gradients_of(*model);
  clear_gradients(*model);
  for (std::int64_t document = 0; document < 6; ++document) {
    const Tensor places = documents.eq(document).flatten().nonzero().squeeze(-1);
    const Tensor alone =
        model->hidden_states(ids.flatten().index_select(0, places).unsqueeze(0), Tensor());
    EXPECT_TRUE(near(packed.flatten(0, 1).index_select(0, places), alone[0], 1e-11));
    (alone[0] * cotangent.flatten(0, 1).index_select(0, places)).sum().backward();
  }
  const auto sums = gradients_of(*model);
  ASSERT_EQ(sums.size(), together.size());
  for (const auto& [name, gradient] : together) {
    EXPECT_TRUE(near(gradient, sums.at(name), 1e-9)) << name;
  }
}

TEST_P(EveryEncoding, TellsOrderApart) {
  const auto model = model_with(GetParam());
  const TinyBatch batch(1, 7);
  const Tensor order = torch::tensor({0, 1, 2, 6, 5, 3, 4}, torch::kInt64);
  const Tensor plain = model->hidden_states(batch.input_ids, Tensor()).index_select(1, order);
  const Tensor moved = model->hidden_states(batch.input_ids.index_select(1, order), Tensor());
  EXPECT_FALSE(near(plain, moved, 1e-3));
}

TEST_P(EveryEncoding, RowsOfTheBiasGradientSumToZero) {
  AttentionTerms terms = terms_of(*small_encoding(GetParam()), 7);
  if (!terms.bias.defined() || !terms.bias.requires_grad()) return;
  terms.bias.retain_grad();
  const SmallHeads heads(7);
  attention(heads.query, heads.key, heads.value, terms, {}, 0.0).square().sum().backward();
  EXPECT_TRUE(near(terms.bias.grad().sum(-1), torch::zeros({kSmallHeads, 7}), 1e-13));
}

TEST_P(EveryEncoding, EveryParameterGetsAGradient) {
  const auto model = model_with(GetParam());
  const TinyBatch batch(4, 16);
  batch.loss(*model).backward();
  for (const auto& parameter : model->named_parameters()) {
    const std::string prefix = "roberta.position.0.";
    if (parameter.key().rfind(prefix, 0) != 0) continue;
    const Tensor gradient = parameter.value().grad();
    ASSERT_TRUE(gradient.defined()) << parameter.key();
    EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << parameter.key();
    const double largest = gradient.abs().max().item<double>();
    if (is_inert(GetParam(), parameter.key().substr(prefix.size()))) {
      EXPECT_LT(largest, 1e-11) << parameter.key();
    } else {
      EXPECT_GT(largest, 1e-7) << parameter.key();
    }
  }
}

// A key's bias shifts all scores of a query alike, unless keys are turned, or meet vectors of
// distances.
TEST_P(EveryEncoding, KeyBiasIsInertWhereKeysMeetQueriesOnly) {
  const auto model = model_with(GetParam());
  const TinyBatch batch(2, 9);
  batch.loss(*model).backward();
  const AttentionTerms terms = model->terms_of_layers(9).front();
  const bool felt = terms.rotation_cos.defined() || terms.relative_query.defined() ||
                    terms.relative_rows_as_queries;
  for (const auto& parameter : model->named_parameters()) {
    if (parameter.key().find("self.key.bias") == std::string::npos) continue;
    const double largest = parameter.value().grad().abs().max().item<double>();
    if (felt) {
      EXPECT_GT(largest, 1e-9) << parameter.key();
    } else {
      EXPECT_LT(largest, 1e-11) << parameter.key();
    }
  }
}

TEST_P(EveryEncoding, RecomputedLayersGiveTheSameBits) {
  const TinyBatch batch(3, 9);
  std::vector<std::map<std::string, Tensor>> gradients;
  for (const std::string recompute :
       {"none", "1", "full", "attention", "ffn", "0:ffn,1:attention"}) {
    const auto model = model_with(GetParam(), torch::kFloat32, recompute);
    batch.loss(*model).backward();
    gradients.push_back(gradients_of(*model));
  }
  for (const auto& others : gradients) {
    ASSERT_EQ(others.size(), gradients.front().size());
    for (const auto& [name, gradient] : others) {
      EXPECT_TRUE(gradient.equal(gradients.front().at(name))) << name;
    }
  }
}

TEST_P(EveryEncoding, ParametersAreAllThereIsToSave) {
  const auto model = model_with(GetParam());
  const auto restored = tiny_model(model->options());
  torch::NoGradGuard no_grad;
  const auto saved = model->named_parameters();
  for (auto& parameter : restored->named_parameters()) {
    parameter.value().copy_(saved[parameter.key()]);
  }
  const TinyBatch batch(2, 9);
  EXPECT_TRUE(batch.loss(*restored).equal(batch.loss(*model)));
  EXPECT_EQ(model->named_buffers().size(), 0u);
}

TEST_P(EveryEncoding, InitialValuesAreAFunctionOfTheGenerator) {
  const auto first = small_encoding(GetParam()), second = small_encoding(GetParam());
  const auto generator = [](std::uint64_t seed) {
    return at::make_generator<at::CPUGeneratorImpl>(seed);
  };
  first->initialize(0.02, generator(4));
  torch::randn({100});
  second->initialize(0.02, generator(4));
  const auto expected = second->named_parameters();
  for (const auto& parameter : first->named_parameters()) {
    EXPECT_TRUE(parameter.value().equal(expected[parameter.key()])) << parameter.key();
    const bool of_a_map =
        parameter.key().size() > 5 && parameter.key().find(".bias") == parameter.key().size() - 5;
    if (of_a_map) {
      EXPECT_EQ(parameter.value().abs().max().item<double>(), 0.0) << parameter.key();
    }
  }
}

TEST_P(EveryEncoding, UndecayedNamesAreParametersAndCoverAllVectors) {
  const auto encoding = small_encoding(GetParam());
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
  const TinyBatch batch(2, 7);
  const Tensor exact = model_with(GetParam())->hidden_states(batch.input_ids, Tensor());
  for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
    const auto model = model_with(GetParam(), type);
    for (const AttentionTerms& terms : model->terms_of_layers(7)) {
      if (terms.bias.defined()) {
        EXPECT_EQ(terms.bias.scalar_type(), torch::kFloat32);
      }
    }
    const Tensor result = model->hidden_states(batch.input_ids, Tensor());
    EXPECT_EQ(result.scalar_type(), type);
    batch.loss(*model).backward();
    for (const auto& [name, gradient] : gradients_of(*model)) {
      EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << name;
    }
    EXPECT_TRUE(near(result, exact, type == torch::kFloat32 ? 2e-5 : 0.3));
  }
}

// Central differences along a random direction, through a whole model whose two layers share the
// encoding.
TEST_P(EveryEncoding, ModelGradientsEqualFiniteDifferences) {
  const auto model = model_with(GetParam());
  TinyBatch batch(3, 7);
  batch.pad(2);
  batch.loss(*model).backward();
  expect_finite_differences(*model, batch, "roberta.position.");
}

// Encodings of distances alone cannot tell where a sequence begins.
TEST_P(EveryEncoding, DistancesAloneMakeToeplitzScores) {
  const std::vector<std::string> relative = {"t5",    "alibi", "rope",    "shaw",
                                             "nezha", "xlnet", "deberta", "deberta-v2"};
  const auto& name = GetParam().name;
  if (std::find(relative.begin(), relative.end(), name) == relative.end()) return;
  const auto encoding = small_encoding(GetParam());
  const Tensor query =
      torch::randn({1, kSmallHeads, 1, kSmallWidth}, torch::kFloat64).expand({1, -1, 8, -1});
  const Tensor key =
      torch::randn({1, kSmallHeads, 1, kSmallWidth}, torch::kFloat64).expand({1, -1, 8, -1});
  const Tensor scores = plain_scores(query, key, terms_of(*encoding, 8));
  const auto corner = [&](std::int64_t first) {
    return scores.narrow(2, first, 7).narrow(3, first, 7);
  };
  EXPECT_TRUE(near_or_blocked(corner(0), corner(1)));
}

std::string test_name(const testing::TestParamInfo<EncodingVariant>& tested) {
  std::string name;
  for (const char letter : tested.param.plan_entry()) {
    name += std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryEncoding, testing::ValuesIn(encoding_variants()), test_name);

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
}  // namespace tupelo::position_encodings_test
