// What every row of the table of input encodings must do, in its default form and with each value
// of each option.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/position/input_encoding.h"
#include "model/token_layout.h"
#include "tests/model/formulas.h"
#include "tests/model/input_batch.h"
#include "tests/model/tiny_model.h"

namespace tupelo::input_encodings_test {
namespace {

using torch::Tensor;

std::vector<std::string> values_of(const PositionOptionKind& option) {
  static const std::map<std::string, std::vector<std::string>> numbers = {
      {"scale", {"0.5"}},    {"alpha", {"0.3"}}, {"base", {"4"}},     {"delta", {"0.07"}},
      {"first", {"0", "4"}}, {"kernel", {"5"}},  {"substeps", {"2"}}, {"refresh_every", {"3"}}};
  return option.values.empty() ? numbers.at(option.name) : option.values;
}

std::vector<std::string> all_variants() {
  std::vector<std::string> variants;
  for (const InputEncodingKind& kind : input_encoding_kinds()) {
    variants.push_back(kind.name);
    for (const PositionOptionKind& option : kind.options) {
      for (const std::string& value : values_of(option)) {
        if (value == option.default_value) continue;
        variants.push_back(kind.name + "(" + option.name + "=" + value + ")");
      }
    }
  }
  for (const std::string variant :
       {"sinusoidal(layout=t2t,trainable=true,merge=mul)", "conv(kernel=5,depthwise=true)",
        "complex-order(form=hermitian,phase=learned,share_frequency=true,direction=backward)",
        "complex-order(form=modulus,direction=backward,first=0)",
        "complex-order(form=concat-proj,phase=learned,share_frequency=true)"}) {
    variants.push_back(variant);
  }
  return variants;
}

// Tokens first .. first + count of one row of a result; both parts of complex ones, [1 or
// 2,count,H].
Tensor part_of(const Tensor& result, std::int64_t rows, std::int64_t row, std::int64_t first,
               std::int64_t count) {
  return result.unflatten(0, {-1, rows}).select(1, row).narrow(1, first, count);
}

bool is_complex(const InputEncoding& encoding) {
  return encoding.complex_scores() != ComplexScores::kNone;
}

class EveryInput : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { torch::manual_seed(23); }
};

TEST_P(EveryInput, HasACanonicalText) {
  const InputPosition position = InputPosition::parse(GetParam());
  EXPECT_EQ(position.to_string(), GetParam());
  EXPECT_EQ(InputPosition::parse(" " + GetParam() + " ").options, position.options);
}

TEST_P(EveryInput, ShapesAtEveryLength) {
  const auto encoding = make_input(GetParam());
  for (const std::int64_t tokens : {1, 2, 5, 8, 9}) {
    const InputBatch batch(3, tokens);
    const Tensor result = batch.through(*encoding);
    EXPECT_EQ(result.sizes(), (at::IntArrayRef{is_complex(*encoding) ? 6 : 3, tokens, kHidden}));
    EXPECT_TRUE(result.isfinite().all().item<bool>());
    const Tensor collapsed = encoding->collapse(result);
    EXPECT_EQ(collapsed.sizes(), (at::IntArrayRef{3, tokens, kHidden}));
    if (!is_complex(*encoding)) {
      EXPECT_TRUE(collapsed.equal(result));
    }
    const Tensor change = part_of(result, 3, 0, 0, tokens)[0] - batch.embeddings[0];
    if (tokens > 1) {  // the first position may be an identity
      EXPECT_GT(change.abs().max().item<double>(), 1e-3);
    }
  }
}

TEST_P(EveryInput, RefusesALongerSequenceNamingBothLengths) {
  const auto encoding = make_input(GetParam());
  const std::int64_t longest = encoding->longest();
  ASSERT_GE(longest, kMaxPositions);
  if (longest == kAnyLength) {
    EXPECT_TRUE(InputBatch(2, 4 * kMaxPositions).through(*encoding).isfinite().all().item<bool>());
    return;
  }
  EXPECT_TRUE(InputBatch(2, longest).through(*encoding).isfinite().all().item<bool>());
  try {
    InputBatch(2, longest + 1).through(*encoding);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find(std::to_string(longest + 1) + " tokens"), std::string::npos) << what;
    EXPECT_NE(what.find(std::to_string(longest) + " positions"), std::string::npos) << what;
  }
}

TEST_P(EveryInput, TellsPositionsApart) {
  const auto encoding = make_input(GetParam());
  InputBatch batch(1, 6);
  batch.embeddings = batch.embeddings.narrow(1, 0, 1).expand_as(batch.embeddings);
  batch.ids.fill_(7);
  const Tensor result = encoding->collapse(batch.through(*encoding))[0];
  for (const std::int64_t place : {1, 5}) {
    EXPECT_GT((result[place] - result[0]).abs().max().item<double>(), 1e-3) << place;
  }
}

TEST_P(EveryInput, PositionsOfRealTokensDoNotDependOnPadding) {
  const auto encoding = make_input(GetParam());
  encoding->eval();
  InputBatch batch(2, 8);
  Tensor mask = torch::ones({2, 8}, torch::kBool);
  mask[1].narrow(0, 5, 3).fill_(false);
  batch.ids.masked_fill_(mask.logical_not(), kPad);
  const Tensor padded = batch.through(*encoding, TokenLayout::rows(batch.ids, mask));
  EXPECT_TRUE(near(part_of(padded, 2, 1, 0, 5), batch.part(1, 0, 5).through(*encoding), 1e-12));

  InputBatch other = batch;
  other.ids = torch::where(mask, batch.ids, torch::full_like(batch.ids, 9));
  other.embeddings = batch.embeddings.clone();
  other.embeddings[1].narrow(0, 5, 3).fill_(1e3);
  const Tensor changed = other.through(*encoding, TokenLayout::rows(other.ids, mask));
  EXPECT_TRUE(part_of(changed, 2, 1, 0, 5).equal(part_of(padded, 2, 1, 0, 5)));
  EXPECT_TRUE(part_of(changed, 2, 0, 0, 8).equal(part_of(padded, 2, 0, 0, 8)));
}

TEST_P(EveryInput, PackedDocumentsAreLikeDocumentsAlone) {
  const auto encoding = make_input(GetParam());
  encoding->eval();
  InputBatch batch(2, 11);
  const Tensor documents = torch::tensor(
      {4, 4, 4, 4, 4, 7, 7, 7, -1, 2, 2, -1, 0, 1, 1, 1, 1, 1, 1, 1, -1, -1}, torch::kInt64);
  const TokenLayout layout = TokenLayout::packed(documents.view({2, 11}));
  batch.ids.masked_fill_(documents.view({2, 11}).lt(0), kPad);
  const Tensor together = batch.through(*encoding, layout);
  const auto expect_alone = [&](std::int64_t row, std::int64_t first, std::int64_t count) {
    EXPECT_TRUE(near(part_of(together, 2, row, first, count),
                     batch.part(row, first, count).through(*encoding), 1e-12))
        << row << " " << first;
  };
  expect_alone(0, 0, 5);
  expect_alone(0, 5, 3);
  expect_alone(0, 9, 2);
  expect_alone(1, 1, 1);
  expect_alone(1, 2, 7);
  EXPECT_TRUE(together.isfinite().all().item<bool>());
}

TEST_P(EveryInput, EveryParameterGetsAGradient) {
  const auto encoding = make_input(GetParam());
  InputBatch batch(2, kMaxPositions);
  batch.embeddings.requires_grad_();
  encoding->collapse(batch.through(*encoding)).pow(3).sum().backward();
  EXPECT_GT(batch.embeddings.grad().abs().max().item<double>(), 1e-6);
  for (const auto& parameter : encoding->named_parameters()) {
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    EXPECT_TRUE(parameter.value().grad().isfinite().all().item<bool>()) << parameter.key();
    EXPECT_GT(parameter.value().grad().abs().max().item<double>(), 1e-6) << parameter.key();
  }
}

// Central differences along a random direction of each parameter and of the embeddings.
TEST_P(EveryInput, GradientsEqualFiniteDifferences) {
  const auto encoding = make_input(GetParam());
  InputBatch batch(2, 7);
  batch.embeddings.requires_grad_();
  const Tensor weights = torch::randn({2, 7, kHidden}, torch::kFloat64);
  const auto loss = [&] { return (encoding->collapse(batch.through(*encoding)) * weights).sum(); };
  loss().backward();
  std::vector<Tensor> variables = encoding->parameters();
  variables.push_back(batch.embeddings);
  for (Tensor& variable : variables) {
    const Tensor direction = torch::randn_like(variable);
    const double expected = (variable.grad() * direction).sum().item<double>();
    const auto loss_at = [&](double step) {
      torch::NoGradGuard no_grad;
      variable.add_(direction, step);
      const double value = loss().item<double>();
      variable.sub_(direction, step);
      return value;
    };
    constexpr double kStep = 1e-6;
    const double measured = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
    EXPECT_NEAR(measured, expected, 1e-6 * std::max(1.0, std::abs(expected))) << variable.sizes();
  }
}

// Through a whole model with padding, whose hidden states may be complex.
TEST_P(EveryInput, ModelGradientsEqualFiniteDifferences) {
  ModelOptions options = tiny_options("all:none");
  options.input_position = GetParam();
  const auto model = tiny_model(options);
  perturb(*model, 0.1);
  TinyBatch batch(3, 7);
  batch.pad(2);
  batch.loss(*model).backward();
  expect_finite_differences(*model, batch, "roberta.embeddings.position_embeddings.");
}

TEST_P(EveryInput, WorksInLowerPrecision) {
  for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
    const auto encoding = make_input(GetParam(), type);
    encoding->eval();
    InputBatch batch(2, 7);
    batch.embeddings = batch.embeddings.to(type).requires_grad_();
    const Tensor result = encoding->collapse(batch.through(*encoding));
    EXPECT_EQ(result.scalar_type(), type);
    result.sum().backward();
    EXPECT_TRUE(batch.embeddings.grad().isfinite().all().item<bool>());
    for (const auto& parameter : encoding->named_parameters()) {
      EXPECT_EQ(parameter.value().grad().scalar_type(), type) << parameter.key();
    }
    encoding->to(torch::kFloat64);
    batch.embeddings = batch.embeddings.to(torch::kFloat64);
    const Tensor exact = encoding->collapse(batch.through(*encoding));
    const double scale = std::max(1.0, exact.abs().max().item<double>());
    EXPECT_TRUE(near(result, exact, (type == torch::kFloat32 ? 1e-5 : 3e-2) * scale));
  }
}

TEST_P(EveryInput, ParametersAreAllThereIsToSave) {
  const auto saved = make_input(GetParam()),
             loaded = InputPosition::parse(GetParam()).make(small_context());
  loaded->to(torch::kFloat64);
  EXPECT_TRUE(loaded->named_buffers().is_empty());
  {
    torch::NoGradGuard no_grad;
    const auto values = saved->named_parameters();
    for (auto& parameter : loaded->named_parameters()) {
      parameter.value().copy_(values[parameter.key()]);
    }
  }
  const InputBatch batch(2, 6);
  EXPECT_TRUE(
      loaded->collapse(batch.through(*loaded)).equal(saved->collapse(batch.through(*saved))));
}

TEST_P(EveryInput, InitialValuesAreAFunctionOfTheGenerator) {
  const auto first = make_input(GetParam()), second = make_input(GetParam());
  first->initialize(0.02, at::make_generator<at::CPUGeneratorImpl>(4));
  torch::randn({100});
  second->initialize(0.02, at::make_generator<at::CPUGeneratorImpl>(4));
  const auto expected = second->named_parameters();
  for (const auto& parameter : first->named_parameters()) {
    EXPECT_TRUE(parameter.value().equal(expected[parameter.key()])) << parameter.key();
    EXPECT_TRUE(parameter.value().isfinite().all().item<bool>()) << parameter.key();
    if (parameter.key().ends_with("bias")) {
      EXPECT_EQ(parameter.value().abs().max().item<double>(), 0.0) << parameter.key();
    }
  }
}

TEST_P(EveryInput, UndecayedNamesAreParametersAndCoverAllVectors) {
  const auto encoding = make_input(GetParam());
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

std::string test_name(const testing::TestParamInfo<std::string>& tested) {
  std::string name = tested.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char letter) { return !std::isalnum(letter); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryInput, testing::ValuesIn(all_variants()), test_name);

}  // namespace
}  // namespace tupelo::input_encodings_test
