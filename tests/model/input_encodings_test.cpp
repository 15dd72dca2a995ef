// What every row of the table of input encodings must do, in its default form and with each value
// of each option; then what is peculiar to some.
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

#include "model/layers.h"
#include "model/position/input_encoding.h"
#include "model/position/sinusoidal.h"
#include "model/token_layout.h"
#include "tests/model/formulas.h"

namespace tupelo {
namespace {

using torch::Tensor;

constexpr std::int64_t kVocabulary = 13, kHidden = 8, kLongest = 9, kPad = 1;

InputContext context() {
  InputContext context;
  context.vocab_size = kVocabulary;
  context.hidden_size = kHidden;
  context.max_positions = kLongest;
  context.pad_id = kPad;
  return context;
}

std::vector<std::string> values_of(const PositionOptionKind& option) {
  static const std::map<std::string, std::vector<std::string>> numbers = {
      {"alpha", {"0.3"}}, {"base", {"4"}},     {"delta", {"0.07"}},     {"first", {"0", "4"}},
      {"kernel", {"5"}},  {"substeps", {"2"}}, {"refresh_every", {"3"}}};
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

std::shared_ptr<InputEncoding> make(const std::string& text,
                                    torch::ScalarType type = torch::kFloat64,
                                    const InputContext& around = context()) {
  const auto encoding = InputPosition::parse(text).make(around);
  encoding->initialize(0.3, at::make_generator<at::CPUGeneratorImpl>(11));
  encoding->to(type);
  perturb(*encoding, 0.2);
  return encoding;
}

// Embeddings and ids of a batch; ids avoid the padding's.
struct Batch {
  Batch(std::int64_t rows, std::int64_t tokens)
      : embeddings(torch::randn({rows, tokens, kHidden}, torch::kFloat64)),
        ids(torch::randint(2, kVocabulary, {rows, tokens}, torch::kInt64)) {}

  Tensor embeddings, ids;

  Tensor through(InputEncoding& encoding, const TokenLayout& layout) const {
    return encoding.forward(embeddings, {ids, layout});
  }
  Tensor through(InputEncoding& encoding) const {
    return through(encoding, TokenLayout::rows(ids, {}));
  }
  // Columns first .. first + count of one row, as a batch of their own.
  Batch part(std::int64_t row, std::int64_t first, std::int64_t count) const {
    Batch part = *this;
    part.embeddings = embeddings.narrow(0, row, 1).narrow(1, first, count);
    part.ids = ids.narrow(0, row, 1).narrow(1, first, count);
    return part;
  }
};

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
  const auto encoding = make(GetParam());
  for (const std::int64_t tokens : {1, 2, 5, 8, 9}) {
    const Batch batch(3, tokens);
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
  const auto encoding = make(GetParam());
  const std::int64_t longest = encoding->longest();
  ASSERT_GE(longest, kLongest);
  if (longest == kAnyLength) {
    EXPECT_TRUE(Batch(2, 4 * kLongest).through(*encoding).isfinite().all().item<bool>());
    return;
  }
  EXPECT_TRUE(Batch(2, longest).through(*encoding).isfinite().all().item<bool>());
  try {
    Batch(2, longest + 1).through(*encoding);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find(std::to_string(longest + 1) + " tokens"), std::string::npos) << what;
    EXPECT_NE(what.find(std::to_string(longest) + " positions"), std::string::npos) << what;
  }
}

TEST_P(EveryInput, TellsPositionsApart) {
  const auto encoding = make(GetParam());
  Batch batch(1, 6);
  batch.embeddings = batch.embeddings.narrow(1, 0, 1).expand_as(batch.embeddings);
  batch.ids.fill_(7);
  const Tensor result = encoding->collapse(batch.through(*encoding))[0];
  for (const std::int64_t place : {1, 5}) {
    EXPECT_GT((result[place] - result[0]).abs().max().item<double>(), 1e-3) << place;
  }
}

TEST_P(EveryInput, PositionsOfRealTokensDoNotDependOnPadding) {
  const auto encoding = make(GetParam());
  encoding->eval();
  Batch batch(2, 8);
  Tensor mask = torch::ones({2, 8}, torch::kBool);
  mask[1].narrow(0, 5, 3).fill_(false);
  batch.ids.masked_fill_(mask.logical_not(), kPad);
  const Tensor padded = batch.through(*encoding, TokenLayout::rows(batch.ids, mask));
  EXPECT_TRUE(near(part_of(padded, 2, 1, 0, 5), batch.part(1, 0, 5).through(*encoding), 1e-12));

  Batch other = batch;
  other.ids = torch::where(mask, batch.ids, torch::full_like(batch.ids, 9));
  other.embeddings = batch.embeddings.clone();
  other.embeddings[1].narrow(0, 5, 3).fill_(1e3);
  const Tensor changed = other.through(*encoding, TokenLayout::rows(other.ids, mask));
  EXPECT_TRUE(part_of(changed, 2, 1, 0, 5).equal(part_of(padded, 2, 1, 0, 5)));
  EXPECT_TRUE(part_of(changed, 2, 0, 0, 8).equal(part_of(padded, 2, 0, 0, 8)));
}

TEST_P(EveryInput, PackedDocumentsAreLikeDocumentsAlone) {
  const auto encoding = make(GetParam());
  encoding->eval();
  Batch batch(2, 11);
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
  const auto encoding = make(GetParam());
  Batch batch(2, kLongest);
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
  const auto encoding = make(GetParam());
  Batch batch(2, 7);
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

TEST_P(EveryInput, WorksInLowerPrecision) {
  for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
    const auto encoding = make(GetParam(), type);
    encoding->eval();
    Batch batch(2, 7);
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
  const auto saved = make(GetParam()), loaded = InputPosition::parse(GetParam()).make(context());
  loaded->to(torch::kFloat64);
  EXPECT_TRUE(loaded->named_buffers().is_empty());
  {
    torch::NoGradGuard no_grad;
    const auto values = saved->named_parameters();
    for (auto& parameter : loaded->named_parameters()) {
      parameter.value().copy_(values[parameter.key()]);
    }
  }
  const Batch batch(2, 6);
  EXPECT_TRUE(
      loaded->collapse(batch.through(*loaded)).equal(saved->collapse(batch.through(*saved))));
}

TEST_P(EveryInput, InitialValuesAreAFunctionOfTheGenerator) {
  const auto first = make(GetParam()), second = make(GetParam());
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

std::string test_name(const testing::TestParamInfo<std::string>& tested) {
  std::string name = tested.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char letter) { return !std::isalnum(letter); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryInput, testing::ValuesIn(all_variants()), test_name);

std::string refusal(const std::string& text, const InputContext& around = context()) {
  try {
    InputPosition::parse(text).make(around);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

void expect_refusal(const std::string& text, const std::string& part) {
  EXPECT_NE(refusal(text).find(part), std::string::npos) << text << " -> " << refusal(text);
}

TEST(InputPosition, NoneIsNothing) {
  EXPECT_EQ(InputPosition::parse("none").make(context()), nullptr);
  EXPECT_EQ(InputPosition::parse("none").to_string(), "none");
  EXPECT_EQ(InputPosition().to_string(), "none");
}

TEST(InputPosition, CanonicalTextHasNoDefaultsAndDeclaredOrder) {
  const auto canonical = [](const std::string& text) {
    return InputPosition::parse(text).to_string();
  };
  EXPECT_EQ(canonical("learned(merge=add)"), "learned");
  EXPECT_EQ(canonical(" sinusoidal ( merge = mul , layout=concat )"),
            "sinusoidal(layout=concat,merge=mul)");
  EXPECT_EQ(canonical("floater(delta=0.0100,substeps=05)"), "floater");
  EXPECT_EQ(canonical("learned-hier(base=0007)"), "learned-hier(base=7)");
}

TEST(InputPosition, RefusesWhatItDoesNotKnow) {
  expect_refusal("learnt",
                 "unknown input position 'learnt' (did you mean 'learned'?); valid: none");
  expect_refusal("", "unknown input position ''");
  expect_refusal("none(x=1)", "none, which has no options");
  expect_refusal("learned(", "input position: 'learned(' has unbalanced parentheses");
  expect_refusal("learned()", "has '' where option=value belongs");
  expect_refusal("sinusoidal(layot=concat)", "no option 'layot' (did you mean 'layout'?)");
  expect_refusal("sinusoidal(layout=up)", "valid: interleaved|concat|t2t");
  expect_refusal("floater(delta=0)", "a number > 0");
  expect_refusal("floater(delta=0.1,delta=0.2)", "given twice");
  expect_refusal("conv(kernel=4)", "kernel=4 must be odd");
  expect_refusal("learned-hier(base=2)", "base=2 reaches 4 of the 9 positions");
  expect_refusal("learned-hier(alpha=0.5)", "differ from 0.5");
  expect_refusal("learned-hier(alpha=1.5)", "between 0 and 1");
  InputContext odd = context();
  odd.hidden_size = 7;
  for (const std::string text : {"sinusoidal", "sinusoidal(trainable=true)"}) {
    EXPECT_NE(refusal(text, odd).find("hidden_size=7 must be even"), std::string::npos);
  }
}

TEST(InputPosition, EveryRowHasHelp) {
  for (const InputEncodingKind& kind : input_encoding_kinds()) {
    EXPECT_FALSE(kind.summary.empty());
    ASSERT_EQ(kind.option_help.size(), kind.options.size());
    for (std::size_t i = 0; i < kind.options.size(); ++i) {
      EXPECT_EQ(kind.option_help[i].rfind(kind.options[i].name + "=", 0), 0u);
    }
  }
}

TEST(LearnedInput, NumbersTokensFromBehindThePaddingRow) {
  const auto encoding = make("learned");
  const Tensor weight = encoding->named_parameters()["weight"];
  EXPECT_EQ(weight.sizes(), (at::IntArrayRef{kPad + 1 + kLongest, kHidden}));
  // Padding on either side: real tokens are counted, padding has the row of its id.
  const Tensor ids = torch::tensor({{1, 1, 5, 6, 7}, {5, 6, 1, 1, 1}}, torch::kInt64);
  const Tensor rows = torch::tensor({{1, 1, 2, 3, 4}, {2, 3, 1, 1, 1}}, torch::kInt64);
  const Tensor nothing = torch::zeros({2, 5, kHidden}, torch::kFloat64);
  const Tensor result = encoding->forward(nothing, {ids, TokenLayout::rows(ids, ids.ne(kPad))});
  EXPECT_TRUE(result.equal(torch::embedding(weight, rows)));
  result.sum().backward();
  EXPECT_EQ(weight.grad()[kPad].abs().max().item<double>(), 0.0);
  EXPECT_EQ(weight.grad()[2][0].item<double>(), 2.0);
}

TEST(LearnedInput, NumbersPackedTokensWithinTheirDocument) {
  const auto encoding = make("learned");
  const Tensor weight = encoding->named_parameters()["weight"];
  // An id equal to the padding's is a token all the same when its document says so.
  const Tensor ids = torch::tensor({{5, 6, 1, 1, 8}}, torch::kInt64);
  const Tensor documents = torch::tensor({{0, 0, 1, -1, 2}}, torch::kInt64);
  const Tensor rows = torch::tensor({{2, 3, 2, 1, 2}}, torch::kInt64);
  const Tensor nothing = torch::zeros({1, 5, kHidden}, torch::kFloat64);
  EXPECT_TRUE(encoding->forward(nothing, {ids, TokenLayout::packed(documents)})
                  .equal(torch::embedding(weight, rows)));
}

TEST(LearnedInput, StartsLikeAnyEmbedding) {
  const auto encoding = InputPosition::parse("learned").make(context());
  encoding->initialize(0.02, initial_value_generator(3, "position_embeddings"));
  Embedding expected(kPad + 1 + kLongest, kHidden, kPad);
  expected.initialize(0.02, initial_value_generator(3, "position_embeddings"));
  EXPECT_TRUE(encoding->parameters().front().equal(expected.weight));
}

TEST(LearnedInput, FactorsStartAroundOne) {
  InputContext large = context();
  large.max_positions = 400;
  const auto encoding = InputPosition::parse("learned(merge=mul)").make(large);
  encoding->initialize(0.02, at::make_generator<at::CPUGeneratorImpl>(4));
  const Tensor weight = encoding->parameters().front();
  EXPECT_EQ(weight[kPad].min().item<double>(), 1.0);
  EXPECT_EQ(weight[kPad].max().item<double>(), 1.0);
  EXPECT_NEAR(weight.mean().item<double>(), 1.0, 2e-3);
  EXPECT_NEAR(weight.std().item<double>(), 0.02, 2e-3);
  EXPECT_EQ(encoding->undecayed_parameters(), std::vector<std::string>{"weight"});
  EXPECT_TRUE(InputPosition::parse("learned").make(large)->undecayed_parameters().empty());
}

TEST(HierarchicalInput, ReachesTheSquareOfItsRows) {
  const auto encoding = make("learned-hier(base=3,alpha=0.4)");
  const Tensor table = encoding->named_parameters()["weight"].detach().narrow(0, kPad + 1, 3);
  const Batch batch(1, 9);
  const Tensor positions = batch.through(*encoding)[0].detach() - batch.embeddings[0];
  const auto unit = [&](std::int64_t row) { return (table[row] - 0.4 * table[0]) / 0.6; };
  for (std::int64_t place = 0; place < 9; ++place) {
    const Tensor expected = 0.4 * unit(place / 3) + 0.6 * unit(place % 3);
    EXPECT_TRUE(near(positions[place], expected, 1e-12)) << place;
  }
  EXPECT_TRUE(near(positions.narrow(0, 0, 3), table, 1e-12));
  EXPECT_EQ(encoding->longest(), 9);
  EXPECT_EQ(make("learned-hier(base=5)")->longest(), 25);
}

TEST(SinusoidalInput, TrainableOnesStartAsTheFixedOnes) {
  for (const std::string layout : {"interleaved", "concat", "t2t"}) {
    const auto fixed = InputPosition::parse("sinusoidal(layout=" + layout + ")").make(context());
    const auto trained =
        InputPosition::parse("sinusoidal(trainable=true,layout=" + layout + ")").make(context());
    trained->initialize(0.02, at::make_generator<at::CPUGeneratorImpl>(4));
    EXPECT_TRUE(fixed->parameters().empty());
    const Batch batch(2, 7);
    const Tensor embeddings = batch.embeddings.to(torch::kFloat32);
    const TokenLayout layout_of_rows = TokenLayout::rows(batch.ids, {});
    EXPECT_TRUE(fixed->forward(embeddings, {batch.ids, layout_of_rows})
                    .equal(trained->forward(embeddings, {batch.ids, layout_of_rows})));
  }
}

TEST(RecursiveInput, NeitherDiesOutNorExplodes) {
  InputContext wide = context();
  wide.hidden_size = 64;
  for (const std::string merge : {"add", "mul"}) {
    const auto encoding = InputPosition::parse("recursive(merge=" + merge + ")").make(wide);
    encoding->initialize(0.02, at::make_generator<at::CPUGeneratorImpl>(4));
    const Tensor ids = torch::full({1, 512}, 5, torch::kInt64);
    const Tensor ones = torch::ones({1, 512, 64});
    torch::NoGradGuard no_grad;
    const Tensor result = encoding->forward(ones, {ids, TokenLayout::rows(ids, {})});
    const Tensor rows = merge == "add" ? result - 1.0 : result;
    EXPECT_GT(rows[0][511].norm().item<double>(), 1e-3 * rows[0][0].norm().item<double>());
    EXPECT_LE(rows[0][511].abs().max().item<double>(), 1.0);
  }
}

Tensor once(InputEncoding& encoding, std::int64_t tokens = 5) {
  const Tensor ids = torch::full({1, tokens}, 5, torch::kInt64);
  return encoding.forward(torch::zeros({1, tokens, kHidden}, torch::kFloat64),
                          {ids, TokenLayout::rows(ids, {})});
}

TEST(FloaterInput, RefreshesItsPathOnEveryNthTrainingCall) {
  torch::manual_seed(5);
  const auto encoding = make("floater(refresh_every=3,delta=0.1)");
  const auto change = [&] { perturb(*encoding, 0.1); };
  const Tensor first = once(*encoding);
  EXPECT_TRUE(first.requires_grad());
  for (const std::int64_t tokens : {std::int64_t{5}, std::int64_t{3}, kLongest}) {
    change();
    if (tokens == kLongest) {
      // Evaluation, and reports in between, neither read nor move what is kept.
      torch::NoGradGuard no_grad;
      EXPECT_FALSE(once(*encoding).equal(first));
    }
    const Tensor again = once(*encoding, tokens);
    const std::int64_t common = std::min<std::int64_t>(tokens, 5);
    const bool refreshed = tokens == kLongest;
    EXPECT_EQ(again.requires_grad(), refreshed);
    EXPECT_EQ(again.narrow(1, 0, common).equal(first.narrow(1, 0, common)), !refreshed);
  }
}

TEST(FloaterInput, EvaluationIsExact) {
  torch::manual_seed(5);
  const auto lazy = make("floater(refresh_every=100)"), exact = make("floater");
  once(*lazy);
  {
    torch::NoGradGuard no_grad;
    const auto values = exact->named_parameters();
    for (auto& parameter : lazy->named_parameters()) {
      parameter.value().copy_(values[parameter.key()]);
    }
  }
  EXPECT_FALSE(once(*lazy).equal(once(*exact)));
  lazy->eval();
  EXPECT_TRUE(once(*lazy).equal(once(*exact)));
}

TEST(FloaterInput, ALongerSequenceThanKeptGetsAPathOfItsOwn) {
  torch::manual_seed(5);
  const auto encoding = make("floater(refresh_every=100)");
  once(*encoding);
  EXPECT_FALSE(once(*encoding, kLongest).requires_grad());
  EXPECT_TRUE(once(*encoding, kLongest + 1).requires_grad());
  EXPECT_FALSE(once(*encoding, kLongest + 1).requires_grad());
}

// Halving the steps divides the error by 2 to the power of the order.
TEST(FloaterInput, SolversConvergeAtTheirOrder) {
  const auto path = [](const std::string& solver, std::int64_t substeps) {
    torch::manual_seed(5);
    const auto encoding =
        make("floater(delta=0.5,solver=" + solver + ",substeps=" + std::to_string(substeps) + ")");
    torch::NoGradGuard no_grad;
    // Away from the kinks of the rectifier the flow is smooth.
    encoding->named_parameters()["flow.0.bias"].add_(8.0);
    encoding->named_parameters()["flow.0.weight"].mul_(0.1);
    return once(*encoding);
  };
  const Tensor exact = path("rk4", 64);
  const auto error = [&](const std::string& solver, std::int64_t substeps) {
    return (path(solver, substeps) - exact).abs().max().item<double>();
  };
  EXPECT_NEAR(std::log2(error("euler", 8) / error("euler", 16)), 1.0, 0.2);
  EXPECT_NEAR(std::log2(error("midpoint", 8) / error("midpoint", 16)), 2.0, 0.3);
  EXPECT_NEAR(std::log2(error("rk4", 2) / error("rk4", 4)), 4.0, 0.5);
}

// r cos(w k + phi), r sin(w k + phi), one number at a time.
TEST(ComplexOrderInput, TurnsByWordAndPosition) {
  torch::manual_seed(5);
  for (const std::string direction : {"forward", "backward"}) {
    const auto encoding =
        make("complex-order(form=modulus,phase=learned,first=3,direction=" + direction + ")");
    const auto parameters = encoding->named_parameters();
    Batch batch(2, 6);
    Tensor mask = torch::ones({2, 6}, torch::kBool);
    mask[1].narrow(0, 4, 2).fill_(false);
    const Tensor result = batch.through(*encoding, TokenLayout::rows(batch.ids, mask));
    for (std::int64_t row = 0; row < 2; ++row) {
      const std::int64_t length = row == 0 ? 6 : 4;
      for (std::int64_t t = 0; t < length; ++t) {
        const std::int64_t id = batch.ids[row][t].item<std::int64_t>();
        const auto place = static_cast<double>(3 + (direction == "forward" ? t : length - 1 - t));
        const Tensor angle = parameters["frequency"][id] * place + parameters["phase"][id];
        EXPECT_TRUE(near(result[row][t], batch.embeddings[row][t] * angle.cos(), 1e-12));
        EXPECT_TRUE(near(result[2 + row][t], batch.embeddings[row][t] * angle.sin(), 1e-12));
      }
    }
  }
}

TEST(ComplexOrderInput, FormsAgreeWithTheComplexOne) {
  torch::manual_seed(5);
  const auto complex = make("complex-order(form=hermitian)");
  const auto real = make("complex-order"), projected = make("complex-order(form=concat-proj)");
  EXPECT_EQ(complex->complex_scores(), ComplexScores::kHermitian);
  EXPECT_EQ(make("complex-order(form=modulus)")->complex_scores(), ComplexScores::kModulus);
  EXPECT_EQ(real->complex_scores(), ComplexScores::kNone);
  torch::NoGradGuard no_grad;
  for (const auto& other : {real, projected}) {
    auto values = complex->named_parameters();
    for (auto& parameter : other->named_parameters()) {
      parameter.value().copy_(values[parameter.key()]);
    }
  }
  const Batch batch(2, 6);
  const Tensor result = batch.through(*complex);
  EXPECT_TRUE(batch.through(*real).equal(result.narrow(0, 0, 2)));
  EXPECT_TRUE(batch.through(*projected).equal(complex->collapse(result)));
  auto values = complex->named_parameters();
  EXPECT_TRUE(near(complex->collapse(result),
                   torch::cat({result.narrow(0, 0, 2), result.narrow(0, 2, 2)}, -1)
                           .matmul(values["output.weight"].t()) +
                       values["output.bias"],
                   1e-12));
}

TEST(ComplexOrderInput, FrequenciesStartGeometric) {
  const auto encoding = InputPosition::parse("complex-order").make(context());
  encoding->initialize(0.02, at::make_generator<at::CPUGeneratorImpl>(4));
  const Tensor frequency = encoding->named_parameters()["frequency"];
  for (std::int64_t m = 0; m < kHidden; ++m) {
    const double expected = std::pow(10000.0, -2.0 * static_cast<double>(m / 2) / kHidden);
    EXPECT_NEAR(frequency[3][m].item<double>(), expected, 1e-6 * expected) << m;
  }
}

TEST(ConvolutionInput, DepthwiseFeaturesDoNotMix) {
  torch::manual_seed(5);
  const auto encoding = make("conv(depthwise=true)");
  EXPECT_EQ(encoding->named_parameters()["weight"].sizes(), (at::IntArrayRef{kHidden, 1, 3}));
  Batch batch(1, 5);
  const Tensor before = batch.through(*encoding);
  batch.embeddings = batch.embeddings.clone();
  batch.embeddings.select(2, 4).add_(1.0);
  const Tensor moved = (batch.through(*encoding) - before).abs().amax({0, 1});
  for (std::int64_t m = 0; m < kHidden; ++m) {
    EXPECT_EQ(moved[m].item<double>() > 1e-6, m == 4) << m;
  }
}

TEST(ConvolutionInput, StartsWithTheVarianceOfTorchsOwn) {
  InputContext wide = context();
  wide.hidden_size = 96;
  const auto encoding = InputPosition::parse("conv").make(wide);
  encoding->initialize(0.02, at::make_generator<at::CPUGeneratorImpl>(4));
  const Tensor weight = encoding->named_parameters()["weight"];
  EXPECT_NEAR(weight.std().item<double>() * std::sqrt(3.0 * 96 * 3), 1.0, 0.02);
}

}  // namespace
}  // namespace tupelo
