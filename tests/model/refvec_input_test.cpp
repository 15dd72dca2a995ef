// Encodings at the input, longer tables, flows and complex hidden states against the reference
// vectors.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/attention.h"
#include "model/border_convolution.h"
#include "model/position/input_encoding.h"
#include "model/position/length_extension.h"
#include "model/position/position_encoding.h"
#include "model/position/relative_line.h"
#include "model/token_layout.h"
#include "tests/model/formulas.h"
#include "tests/support/refvec.h"

namespace tupelo::refvec_input_test {
namespace {

using torch::Tensor;

class RefvecInput : public testing::TestWithParam<torch::ScalarType> {};

Tensor differentiated(const Refvec& vectors, const std::string& key) {
  return vectors.tensor(key).clone().requires_grad_();
}

Tensor mask_of(const Refvec& vectors) { return vectors.tensor("in.mask").to(torch::kBool); }

// [..] rows of tokens, zero for padding, as the files store results.
Tensor without_padding(const Refvec& vectors, const Tensor& rows) {
  const Tensor mask = mask_of(vectors);
  return rows.dim() == 4 ? rows * mask.unsqueeze(1).unsqueeze(-1) : rows * mask.unsqueeze(-1);
}

// Parameters are called `prefix` + their name in the file.
void load_parameters(torch::nn::Module& module, const Refvec& vectors, const std::string& prefix) {
  module.to(vectors.precision());
  torch::NoGradGuard no_grad;
  for (auto& parameter : module.named_parameters()) {
    parameter.value().copy_(vectors.tensor("param." + prefix + parameter.key()));
  }
}

std::shared_ptr<InputEncoding> input_encoding(const std::string& text, InputContext context) {
  return InputPosition::parse(text).make(context);
}

InputContext context_of(std::int64_t hidden, std::int64_t positions) {
  InputContext context;
  context.vocab_size = 11;
  context.hidden_size = hidden;
  context.max_positions = positions;
  return context;
}

// Sums results weighed by their cotangents, then compares the loss and what it derives to.
class Objective {
 public:
  explicit Objective(const Refvec& vectors)
      : vectors_(vectors), loss_(torch::zeros({}, vectors.precision())) {}

  void add(const std::string& name, const Tensor& result) {
    EXPECT_TRUE(vectors_.compare("out." + name, result));
    loss_ = loss_ + (result * vectors_.tensor("cot." + name)).sum();
    ++added_;
  }

  void differentiate() {
    EXPECT_EQ(added_, vectors_.keys("cot.").size());
    EXPECT_TRUE(vectors_.compare("out.loss", loss_.view({1})));
    loss_.backward();
  }

  void expect_gradient(const std::string& name, const Tensor& gradient) {
    EXPECT_TRUE(vectors_.compare("grad." + name, gradient));
    ++compared_;
  }

  ~Objective() { EXPECT_EQ(compared_, vectors_.keys("grad.").size()); }

 private:
  const Refvec& vectors_;
  Tensor loss_;
  std::size_t added_ = 0, compared_ = 0;
};

TEST_P(RefvecInput, MergesOfPositionsAndEmbeddings) {
  const Refvec vectors = Refvec::load("absolute_merge", GetParam());
  const InputContext context = context_of(vectors.integer("dim"), vectors.integer("seq"));
  Objective objective(vectors);
  const Tensor embeddings = differentiated(vectors, "in.x");
  const Tensor ids = torch::full({2, vectors.integer("seq")}, 5, torch::kInt64);
  const TokenLayout layout = TokenLayout::rows(ids, mask_of(vectors));
  std::vector<std::shared_ptr<InputEncoding>> encodings;
  for (const std::string merge : {"add", "mul", "mul1p"}) {
    encodings.push_back(input_encoding("sinusoidal(trainable=true,merge=" + merge + ")", context));
    encodings.back()->to(GetParam());
    {
      torch::NoGradGuard no_grad;
      encodings.back()->parameters().front().copy_(vectors.tensor("param.position"));
    }
    objective.add(merge,
                  without_padding(vectors, encodings.back()->forward(embeddings, {ids, layout})));
  }
  objective.differentiate();
  objective.expect_gradient("x", embeddings.grad());
  Tensor gradient = torch::zeros_like(vectors.tensor("param.position"));
  for (const auto& encoding : encodings) gradient += encoding->parameters().front().grad();
  objective.expect_gradient("position", gradient);
}

TEST_P(RefvecInput, HierarchicalTable) {
  const Refvec vectors = Refvec::load("hierarchical", GetParam());
  Objective objective(vectors);
  LengthExtension extension;
  extension.tables = TableExtension::kHierarchical;
  extension.hierarchical_alpha = vectors.number("alpha");
  const Tensor table = differentiated(vectors, "param.table");
  EXPECT_EQ(table.size(0), vectors.integer("n"));
  objective.add("extended", extended_table(table, 0, vectors.integer("count"), extension));
  objective.differentiate();
  objective.expect_gradient("table", table.grad());
}

// The encoding keeps rows for padding and below in front of the same table.
TEST_P(RefvecInput, HierarchicalEncoding) {
  const Refvec vectors = Refvec::load("hierarchical", GetParam());
  Objective objective(vectors);
  const std::int64_t count = vectors.integer("count");
  const std::string base = std::to_string(vectors.integer("n"));
  const auto encoding = input_encoding("learned-hier(base=" + base + ",alpha=0.4)",
                                       context_of(vectors.integer("dim"), count));
  encoding->to(GetParam());
  const Tensor weight = encoding->parameters().front();
  ASSERT_EQ(weight.size(0), vectors.integer("n") + 1);
  {
    torch::NoGradGuard no_grad;
    weight.narrow(0, 1, vectors.integer("n")).copy_(vectors.tensor("param.table"));
  }
  const Tensor ids = torch::full({1, count}, 5, torch::kInt64);
  const TokenLayout layout = TokenLayout::rows(ids, {});
  const Tensor nothing = torch::zeros({1, count, vectors.integer("dim")}, GetParam());
  objective.add("extended", encoding->forward(nothing, {ids, layout})[0]);
  objective.differentiate();
  objective.expect_gradient("table", weight.grad().narrow(0, 1, vectors.integer("n")));
}

TEST_P(RefvecInput, ExtendedTables) {
  const Refvec vectors = Refvec::load("extend", GetParam());
  Objective objective(vectors);
  const std::int64_t longer = vectors.integer("new");
  const Tensor learned = differentiated(vectors, "param.learned");
  const Tensor tupe = differentiated(vectors, "param.tupe");
  const Tensor relative = differentiated(vectors, "param.rel");
  const auto by = [](TableExtension tables) {
    LengthExtension extension;
    extension.tables = tables;
    return extension;
  };
  objective.add("learned_align", extended_table(learned, 0, longer, by(TableExtension::kAlign)));
  objective.add("learned_scale", extended_table(learned, 0, longer, by(TableExtension::kScale)));
  objective.add("tupe_align", extended_table(tupe, 2, longer + 1, by(TableExtension::kAlign)));
  objective.add("rel_recentred", clipped_line(relative, longer).t());
  objective.differentiate();
  objective.expect_gradient("learned", learned.grad());
  objective.expect_gradient("tupe", tupe.grad());
  objective.expect_gradient("rel", relative.grad());
}

TEST_P(RefvecInput, Recursive) {
  const Refvec vectors = Refvec::load("recursive", GetParam());
  Objective objective(vectors);
  const std::int64_t count = vectors.integer("count"), hidden = vectors.integer("dim");
  const auto encoding = input_encoding("recursive", context_of(hidden, 4));
  load_parameters(*encoding, vectors, "");
  EXPECT_EQ(encoding->parameters().size(), vectors.keys("param.").size());
  const Tensor ids = torch::full({1, count}, 5, torch::kInt64);
  const TokenLayout layout = TokenLayout::rows(ids, {});
  objective.add("table",
                encoding->forward(torch::zeros({1, count, hidden}, GetParam()), {ids, layout})[0]);
  objective.differentiate();
  for (const auto& [name, gradient] : gradients_of(*encoding)) {
    objective.expect_gradient(name, gradient);
  }
}

// [T,3,H] from a layer's terms.
Tensor path_of(const AttentionTerms& terms) {
  return torch::stack({terms.query_offset, terms.key_offset, terms.value_offset})
      .permute({2, 0, 1, 3})
      .flatten(2);
}

TEST_P(RefvecInput, Floater) {
  const Refvec vectors = Refvec::load("floater", GetParam());
  Objective objective(vectors);
  PositionContext context;
  context.heads = vectors.integer("heads");
  context.head_width = vectors.integer("dim") / context.heads;
  context.max_positions = 4;
  std::map<std::string, Tensor> heads;
  for (const std::string name : {"q", "k", "v"}) {
    heads[name] = differentiated(vectors, "in." + name);
  }
  std::vector<std::shared_ptr<PositionEncoding>> encodings;
  for (const std::string solver : {"euler", "midpoint", "rk4"}) {
    encodings.push_back(
        make_position_encoding("floater", context,
                               {{"solver", solver},
                                {"delta", "0.1"},
                                {"substeps", std::to_string(vectors.integer("substeps"))}}));
    load_parameters(*encodings.back(), vectors, "");
    EXPECT_EQ(encodings.back()->parameters().size(), vectors.keys("param.").size());
    const AttentionTerms terms = encodings.back()->terms(vectors.integer("seq"));
    objective.add("table." + solver, path_of(terms));
    if (solver == "midpoint") {
      EXPECT_TRUE(vectors.compare(
          "out.scores", attention_scores(heads["q"], heads["k"], terms, mask_of(vectors))));
      objective.add("attn", without_padding(vectors, attention(heads["q"], heads["k"], heads["v"],
                                                               terms, mask_of(vectors), 0.0)));
    }
  }
  objective.differentiate();
  std::map<std::string, Tensor> gradients;
  for (const auto& encoding : encodings) {
    for (const auto& [name, gradient] : gradients_of(*encoding)) {
      gradients[name] = gradients.count(name) ? gradients[name] + gradient : gradient;
    }
  }
  gradients["start"] = gradients["start"].squeeze(0);
  for (const auto& [name, gradient] : gradients) objective.expect_gradient(name, gradient);
  for (const auto& [name, head] : heads) objective.expect_gradient(name, head.grad());
}

// At the input a single path, so the file's path of queries.
TEST_P(RefvecInput, FloaterAtTheInput) {
  const Refvec vectors = Refvec::load("floater", GetParam());
  const std::int64_t tokens = vectors.integer("seq"), hidden = vectors.integer("dim");
  for (const std::string solver : {"euler", "midpoint", "rk4"}) {
    const auto encoding = input_encoding("floater(delta=0.1,substeps=5,solver=" + solver + ")",
                                         context_of(hidden, 4));
    encoding->to(GetParam());
    torch::NoGradGuard no_grad;
    for (auto& parameter : encoding->named_parameters()) {
      const Tensor value = vectors.tensor("param." + parameter.key());
      parameter.value().copy_(parameter.key() == "start" ? value[0] : value);
    }
    const Tensor ids = torch::full({1, tokens}, 5, torch::kInt64);
    const TokenLayout layout = TokenLayout::rows(ids, {});
    const Tensor path =
        encoding->forward(torch::zeros({1, tokens, hidden}, GetParam()), {ids, layout})[0];
    const double tolerance = GetParam() == torch::kFloat64 ? 1e-10 : 2e-5;
    EXPECT_TRUE(near(path, vectors.tensor("out.table." + solver).select(1, 0), tolerance));
  }
}

TEST_P(RefvecInput, ConvolutionSeesBorders) {
  const Refvec vectors = Refvec::load("conv_zeropad", GetParam());
  Objective objective(vectors);
  const auto encoding =
      input_encoding("conv(kernel=" + std::to_string(vectors.integer("kernel")) + ")",
                     context_of(vectors.integer("dim"), vectors.integer("seq")));
  load_parameters(*encoding, vectors, "conv.");
  EXPECT_EQ(encoding->parameters().size(), vectors.keys("param.").size());
  const Tensor embeddings = differentiated(vectors, "in.x");
  const Tensor ids = torch::full({2, vectors.integer("seq")}, 5, torch::kInt64);
  const TokenLayout layout = TokenLayout::rows(ids, mask_of(vectors));
  const Tensor result = without_padding(vectors, encoding->forward(embeddings, {ids, layout}));
  objective.add("residual_gelu", result);
  const Tensor gelu = torch::gelu(vectors.tensor("out.conv"));
  EXPECT_TRUE(near(result - without_padding(vectors, embeddings), gelu, 2e-5));
  objective.differentiate();
  objective.expect_gradient("x", embeddings.grad());
  for (const auto& [name, gradient] : gradients_of(*encoding)) {
    objective.expect_gradient("conv." + name, gradient);
  }
}

// As a layer's terms the same kernel does the same.
TEST_P(RefvecInput, ConvolutionAsTermsOfALayer) {
  const Refvec vectors = Refvec::load("conv_zeropad", GetParam());
  PositionContext context;
  context.heads = 2;
  context.head_width = vectors.integer("dim") / 2;
  context.max_positions = 4;
  const auto encoding = make_position_encoding("conv", context, {});
  load_parameters(*encoding, vectors, "conv.");
  const AttentionTerms terms = encoding->terms(vectors.integer("seq"));
  const Tensor ids = torch::full({2, vectors.integer("seq")}, 5, torch::kInt64);
  const Tensor result =
      border_convolution(vectors.tensor("in.x"), terms.convolution_weight, terms.convolution_bias,
                         TokenLayout::rows(ids, mask_of(vectors)));
  EXPECT_TRUE(vectors.compare("out.residual_gelu", without_padding(vectors, result)));
}

void add_complex_attention(const Refvec& vectors, const std::string& form, ComplexScores scores,
                           std::map<std::string, Tensor>& parts, Objective& objective) {
  const auto complex = [&](const std::string& name) {
    return torch::cat({parts[name + ".re"], parts[name + ".im"]}, -1);
  };
  AttentionTerms terms = plain_attention_terms(parts["q.re"].size(-1));
  terms.complex_scores = scores;
  const Tensor query = complex("q"), key = complex("k"), mask = mask_of(vectors);
  EXPECT_TRUE(
      vectors.compare("out." + form + ".scores", attention_scores(query, key, terms, mask)));
  const auto halves =
      without_padding(vectors, attention(query, key, complex("v"), terms, mask, 0.0)).chunk(2, -1);
  objective.add(form + ".re", halves[0]);
  objective.add(form + ".im", halves[1]);
}

TEST_P(RefvecInput, ComplexOrder) {
  const Refvec vectors = Refvec::load("complex_order", GetParam());
  Objective objective(vectors);
  const auto encoding = input_encoding("complex-order(form=hermitian,phase=learned,first=" +
                                           std::to_string(vectors.integer("first")) + ")",
                                       context_of(vectors.integer("dim"), vectors.integer("seq")));
  encoding->to(GetParam());
  auto parameters = encoding->named_parameters();
  for (const std::string name : {"frequency", "phase"}) {
    torch::NoGradGuard no_grad;
    parameters[name].copy_(vectors.tensor("param." + name));
  }
  const Tensor amplitude = differentiated(vectors, "param.amplitude");
  const Tensor ids = vectors.tensor("in.input_ids");
  const TokenLayout layout = TokenLayout::rows(ids, mask_of(vectors));
  const auto halves =
      encoding->forward(torch::embedding(amplitude, ids), {ids, layout}).chunk(2, 0);
  objective.add("embed.re", without_padding(vectors, halves[0]));
  objective.add("embed.im", without_padding(vectors, halves[1]));

  std::map<std::string, Tensor> parts;
  for (const std::string name : {"q.re", "q.im", "k.re", "k.im", "v.re", "v.im"}) {
    parts[name] = differentiated(vectors, "in." + name);
  }
  add_complex_attention(vectors, "hermitian", ComplexScores::kHermitian, parts, objective);
  add_complex_attention(vectors, "modulus", ComplexScores::kModulus, parts, objective);
  objective.differentiate();
  objective.expect_gradient("amplitude", amplitude.grad());
  objective.expect_gradient("frequency", parameters["frequency"].grad());
  objective.expect_gradient("phase", parameters["phase"].grad());
  for (const auto& [name, part] : parts) objective.expect_gradient(name, part.grad());
}

INSTANTIATE_TEST_SUITE_P(Precisions, RefvecInput, testing::Values(torch::kFloat64, torch::kFloat32),
                         [](const auto& tested) {
                           return tested.param == torch::kFloat64 ? "Float64" : "Float32";
                         });

}  // namespace
}  // namespace tupelo::refvec_input_test
