// Names of input encodings, and what is peculiar to each.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/layers.h"
#include "model/position/input_encoding.h"
#include "model/position/sinusoidal.h"
#include "model/token_layout.h"
#include "tests/model/formulas.h"
#include "tests/model/input_batch.h"

namespace tupelo::input_kinds_test {
namespace {

using torch::Tensor;

std::string refusal(const std::string& text, const InputContext& around = small_context()) {
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
  EXPECT_EQ(InputPosition::parse("none").make(small_context()), nullptr);
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
  expect_refusal("conv(kernel=4)", "an odd integer from 3 to 1023");
  expect_refusal("learned-hier(base=2)", "base=2 reaches 4 of the 9 positions");
  expect_refusal("learned-hier(alpha=0.5)", "differ from 0.5");
  expect_refusal("learned-hier(alpha=1.5)", "> 0 and < 1 other than 0.5");
  InputContext odd = small_context();
  odd.hidden_size = 7;
  for (const std::string text : {"sinusoidal", "sinusoidal(trainable=true)"}) {
    EXPECT_NE(refusal(text, odd).find("hidden-size=7 must be even"), std::string::npos);
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
  const auto encoding = make_input("learned");
  const Tensor weight = encoding->named_parameters()["weight"];
  EXPECT_EQ(weight.sizes(), (at::IntArrayRef{kPad + 1 + kMaxPositions, kHidden}));
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
  const auto encoding = make_input("learned");
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
  const auto encoding = InputPosition::parse("learned").make(small_context());
  encoding->initialize(0.02, initial_value_generator(3, "position_embeddings"));
  Embedding expected(kPad + 1 + kMaxPositions, kHidden, kPad);
  expected.initialize(0.02, initial_value_generator(3, "position_embeddings"));
  EXPECT_TRUE(encoding->parameters().front().equal(expected.weight));
}

TEST(LearnedInput, FactorsStartAroundOne) {
  InputContext large = small_context();
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
  const auto encoding = make_input("learned-hier(base=3,alpha=0.4)");
  const Tensor table = encoding->named_parameters()["weight"].detach().narrow(0, kPad + 1, 3);
  const InputBatch batch(1, 9);
  const Tensor positions = batch.through(*encoding)[0].detach() - batch.embeddings[0];
  const auto unit = [&](std::int64_t row) { return (table[row] - 0.4 * table[0]) / 0.6; };
  for (std::int64_t place = 0; place < 9; ++place) {
    const Tensor expected = 0.4 * unit(place / 3) + 0.6 * unit(place % 3);
    EXPECT_TRUE(near(positions[place], expected, 1e-12)) << place;
  }
  EXPECT_TRUE(near(positions.narrow(0, 0, 3), table, 1e-12));
  EXPECT_EQ(encoding->longest(), 9);
  EXPECT_EQ(make_input("learned-hier(base=5)")->longest(), 25);
}

TEST(SinusoidalInput, TrainableOnesStartAsTheFixedOnes) {
  for (const std::string layout : {"interleaved", "concat", "t2t"}) {
    const auto fixed =
        InputPosition::parse("sinusoidal(layout=" + layout + ")").make(small_context());
    const auto trained = InputPosition::parse("sinusoidal(trainable=true,layout=" + layout + ")")
                             .make(small_context());
    trained->initialize(0.02, at::make_generator<at::CPUGeneratorImpl>(4));
    EXPECT_TRUE(fixed->parameters().empty());
    const InputBatch batch(2, 7);
    const Tensor embeddings = batch.embeddings.to(torch::kFloat32);
    const TokenLayout layout_of_rows = TokenLayout::rows(batch.ids, {});
    EXPECT_TRUE(fixed->forward(embeddings, {batch.ids, layout_of_rows})
                    .equal(trained->forward(embeddings, {batch.ids, layout_of_rows})));
  }
}

TEST(RecursiveInput, NeitherDiesOutNorExplodes) {
  InputContext wide = small_context();
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
  const auto encoding = make_input("floater(refresh_every=3,delta=0.1)");
  const auto change = [&] { perturb(*encoding, 0.1); };
  const Tensor first = once(*encoding);
  EXPECT_TRUE(first.requires_grad());
  for (const std::int64_t tokens : {std::int64_t{5}, std::int64_t{3}, kMaxPositions}) {
    change();
    if (tokens == kMaxPositions) {
      // Evaluation, and reports in between, neither read nor move what is kept.
      torch::NoGradGuard no_grad;
      EXPECT_FALSE(once(*encoding).equal(first));
    }
    const Tensor again = once(*encoding, tokens);
    const std::int64_t common = std::min<std::int64_t>(tokens, 5);
    const bool refreshed = tokens == kMaxPositions;
    EXPECT_EQ(again.requires_grad(), refreshed);
    EXPECT_EQ(again.narrow(1, 0, common).equal(first.narrow(1, 0, common)), !refreshed);
  }
}

TEST(FloaterInput, EvaluationIsExact) {
  torch::manual_seed(5);
  const auto lazy = make_input("floater(refresh_every=100)"), exact = make_input("floater");
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
  const auto encoding = make_input("floater(refresh_every=100)");
  once(*encoding);
  EXPECT_FALSE(once(*encoding, kMaxPositions).requires_grad());
  EXPECT_TRUE(once(*encoding, kMaxPositions + 1).requires_grad());
  EXPECT_FALSE(once(*encoding, kMaxPositions + 1).requires_grad());
}

// Halving the steps divides the error by 2 to the power of the order.
TEST(FloaterInput, SolversConvergeAtTheirOrder) {
  const auto path = [](const std::string& solver, std::int64_t substeps) {
    torch::manual_seed(5);
    const auto encoding = make_input("floater(delta=0.5,solver=" + solver +
                                     ",substeps=" + std::to_string(substeps) + ")");
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
        make_input("complex-order(form=modulus,phase=learned,first=3,direction=" + direction + ")");
    const auto parameters = encoding->named_parameters();
    InputBatch batch(2, 6);
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
  const auto complex = make_input("complex-order(form=hermitian)");
  const auto real = make_input("complex-order"),
             projected = make_input("complex-order(form=concat-proj)");
  EXPECT_EQ(complex->complex_scores(), ComplexScores::kHermitian);
  EXPECT_EQ(make_input("complex-order(form=modulus)")->complex_scores(), ComplexScores::kModulus);
  EXPECT_EQ(real->complex_scores(), ComplexScores::kNone);
  torch::NoGradGuard no_grad;
  for (const auto& other : {real, projected}) {
    auto values = complex->named_parameters();
    for (auto& parameter : other->named_parameters()) {
      parameter.value().copy_(values[parameter.key()]);
    }
  }
  const InputBatch batch(2, 6);
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
  const auto encoding = InputPosition::parse("complex-order").make(small_context());
  encoding->initialize(0.02, at::make_generator<at::CPUGeneratorImpl>(4));
  const Tensor frequency = encoding->named_parameters()["frequency"];
  for (std::int64_t m = 0; m < kHidden; ++m) {
    const double expected = std::pow(10000.0, -2.0 * static_cast<double>(m / 2) / kHidden);
    EXPECT_NEAR(frequency[3][m].item<double>(), expected, 1e-6 * expected) << m;
  }
}

TEST(ConvolutionInput, DepthwiseFeaturesDoNotMix) {
  torch::manual_seed(5);
  const auto encoding = make_input("conv(depthwise=true)");
  EXPECT_EQ(encoding->named_parameters()["weight"].sizes(), (at::IntArrayRef{kHidden, 1, 3}));
  InputBatch batch(1, 5);
  const Tensor before = batch.through(*encoding);
  batch.embeddings = batch.embeddings.clone();
  batch.embeddings.select(2, 4).add_(1.0);
  const Tensor moved = (batch.through(*encoding) - before).abs().amax({0, 1});
  for (std::int64_t m = 0; m < kHidden; ++m) {
    EXPECT_EQ(moved[m].item<double>() > 1e-6, m == 4) << m;
  }
}

TEST(ConvolutionInput, StartsWithTheVarianceOfTorchsOwn) {
  InputContext wide = small_context();
  wide.hidden_size = 96;
  const auto encoding = InputPosition::parse("conv").make(wide);
  encoding->initialize(0.02, at::make_generator<at::CPUGeneratorImpl>(4));
  const Tensor weight = encoding->named_parameters()["weight"];
  EXPECT_NEAR(weight.std().item<double>() * std::sqrt(3.0 * 96 * 3), 1.0, 0.02);
}

TEST(SinusoidalInput, ScaleMultipliesTheSinusoids) {
  const Tensor ids = torch::full({1, 5}, 3, torch::kInt64);
  const Tensor nothing = torch::zeros({1, 5, kHidden}, torch::kFloat64);
  const TokenLayout layout = TokenLayout::rows(ids, {});
  const Tensor plain = make_input("sinusoidal")->forward(nothing, {ids, layout});
  const Tensor scaled = make_input("sinusoidal(scale=0.25)")->forward(nothing, {ids, layout});
  EXPECT_TRUE(near(scaled, 0.25 * plain, 1e-15));
  EXPECT_NEAR(plain.abs().max().item<double>(), 1.0, 1e-12);
}

TEST(ComplexOrderInput, FrequenciesStartAsThoseOfSinusoids) {
  const auto encoding = InputPosition::parse("complex-order").make(small_context());
  encoding->initialize(0.3, at::make_generator<at::CPUGeneratorImpl>(11));
  const Tensor frequency = encoding->named_parameters()["frequency"];
  ASSERT_EQ(frequency.sizes(), (at::IntArrayRef{kVocabulary, kHidden}));
  for (std::int64_t feature = 0; feature < kHidden; ++feature) {
    const double pair = std::floor(static_cast<double>(feature) / 2);
    const double expected = std::pow(10000.0, -2.0 * pair / kHidden);
    EXPECT_NEAR(frequency[5][feature].item<double>(), expected, 1e-7);
  }
}

}  // namespace
}  // namespace tupelo::input_kinds_test
