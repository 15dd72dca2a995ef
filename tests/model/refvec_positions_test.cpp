#include <gtest/gtest.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "model/attention.h"
#include "model/position/position_encoding.h"
#include "model/position/sinusoidal.h"
#include "model/position/t5_buckets.h"
#include "tests/model/formulas.h"
#include "tests/support/refvec.h"

namespace tupelo::refvec_positions_test {
namespace {

using torch::Tensor;

class RefvecPositions : public testing::TestWithParam<torch::ScalarType> {};

std::shared_ptr<PositionEncoding> encoding_with_parameters(const Refvec& vectors,
                                                           const std::string& name,
                                                           const PositionOptions& options,
                                                           double epsilon) {
  PositionContext context;
  context.heads = vectors.integer("heads");
  context.head_width = vectors.integer("head_dim");
  context.max_positions = vectors.integer("max_len");
  context.layer_norm_epsilon = epsilon;
  const auto encoding = make_position_encoding(name, context, options);
  encoding->to(vectors.precision());
  torch::NoGradGuard no_grad;
  for (auto& parameter : encoding->named_parameters()) {
    parameter.value().copy_(vectors.tensor("param." + parameter.key()));
  }
  return encoding;
}

Tensor differentiated(const Refvec& vectors, const std::string& key) {
  return vectors.tensor(key).clone().requires_grad_();
}

Tensor key_mask(const Refvec& vectors) { return vectors.tensor("in.mask").to(torch::kBool); }

// [B,N,T,D] with the rows of padding queries zero, as the files store results.
Tensor without_padding(const Refvec& vectors, const Tensor& rows) {
  return rows * key_mask(vectors).unsqueeze(1).unsqueeze(-1);
}

void check_tupe(const std::string& name, const std::string& encoding_name, PositionOptions options,
                torch::ScalarType precision) {
  const Refvec vectors = Refvec::load(name, precision);
  if (encoding_name == "tupe-r") {
    options.emplace_back("rel_bins", std::to_string(vectors.integer("rel_bins")));
    options.emplace_back("max_distance", std::to_string(vectors.integer("max_distance")));
  }
  const auto encoding =
      encoding_with_parameters(vectors, encoding_name, options, vectors.number("eps"));
  EXPECT_EQ(encoding->parameters().size(), vectors.keys("param.").size());
  const AttentionTerms terms = encoding->terms(vectors.integer("seq"));
  const bool biased = terms.bias.defined();
  if (biased) {
    EXPECT_TRUE(vectors.compare("out.bias", terms.bias));
  }
  Tensor loss = torch::zeros({}, precision);
  std::vector<std::string> input_names;
  std::vector<Tensor> inputs;
  for (const std::string n : {"0", "1"}) {
    const std::size_t first = inputs.size();
    for (const std::string letter : {"q", "k", "v"}) {
      input_names.push_back(letter + n);
      inputs.push_back(differentiated(vectors, "in." + letter + n));
    }
    if (biased) {
      EXPECT_TRUE(
          vectors.compare("out.scores" + n, plain_scores(inputs[first], inputs[first + 1], terms)));
    }
    const Tensor result =
        without_padding(vectors, attention(inputs[first], inputs[first + 1], inputs[first + 2],
                                           terms, key_mask(vectors), 0.0));
    EXPECT_TRUE(vectors.compare("out.attn" + n, result));
    loss = loss + (result * vectors.tensor("cot.attn" + n)).sum();
  }
  EXPECT_TRUE(vectors.compare("out.loss", loss.view({1})));
  loss.backward();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(vectors.compare("grad." + input_names[i], inputs[i].grad()));
  }
  for (const auto& parameter : encoding->named_parameters()) {
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    EXPECT_TRUE(vectors.compare("grad." + parameter.key(), parameter.value().grad()));
  }
}

TEST_P(RefvecPositions, TupeAbsolute) { check_tupe("tupe_a", "tupe-a", {}, GetParam()); }

TEST_P(RefvecPositions, TupeAbsoluteByConcatenation) {
  check_tupe("tupe_a", "tupe-a", {{"fold", "concat"}}, GetParam());
}

TEST_P(RefvecPositions, TupeRelative) { check_tupe("tupe_r", "tupe-r", {}, GetParam()); }

TEST_P(RefvecPositions, TupeRelativeAsInThePaper) {
  check_tupe("tupe_r_paper", "tupe-r", {{"theta", "paper"}}, GetParam());
}

TEST_P(RefvecPositions, SinusoidalLayouts) {
  const Refvec vectors = Refvec::load("sinusoidal", GetParam());
  const auto table = [&](SinusoidLayout layout) {
    return sinusoidal_table(vectors.tensor("in.positions"), vectors.integer("dim"), layout)
        .to(GetParam());
  };
  EXPECT_TRUE(vectors.compare("out.interleaved", table(SinusoidLayout::kInterleaved)));
  EXPECT_TRUE(vectors.compare("out.concat", table(SinusoidLayout::kConcat)));
  EXPECT_TRUE(vectors.compare("out.t2t", table(SinusoidLayout::kTensor2Tensor)));
}

// The three forms of the article, each expressed by flags.
struct Form {
  std::string name;
  PositionOptions options;
};
std::vector<Form> forms() {
  return {{"literal", {{"scale", "each"}}},
          {"joint", {{"temperature", "per-head"}, {"temperature_cc", "true"}}},
          {"fourway", {{"pp", "both"}, {"temperature", "per-head"}, {"temperature_cc", "true"}}}};
}

void check_article(const std::string& fold, torch::ScalarType precision) {
  const Refvec vectors = Refvec::load("article", precision);
  std::vector<Tensor> inputs;
  for (const std::string letter : {"q", "k", "v"}) {
    inputs.push_back(differentiated(vectors, "in." + letter));
  }
  std::map<std::string, Tensor> gradients;
  Tensor loss = torch::zeros({}, precision);
  std::vector<std::shared_ptr<PositionEncoding>> encodings;
  for (Form form : forms()) {
    form.options.emplace_back("pos_dim", std::to_string(vectors.integer("pos_dim")));
    form.options.emplace_back("rel_range", std::to_string(vectors.integer("rel_range")));
    form.options.emplace_back("fold", fold);
    encodings.push_back(encoding_with_parameters(vectors, "article", form.options, 1e-5));
    const AttentionTerms terms = encodings.back()->terms(vectors.integer("seq"));
    EXPECT_EQ(terms.key_extra.defined(), fold == "concat");
    const Tensor scores = plain_scores(inputs[0], inputs[1], terms);
    EXPECT_TRUE(vectors.compare("out." + form.name + ".scores", scores));
    if (form.name == "joint") {
      EXPECT_TRUE(vectors.compare("out.fold." + fold + ".scores", scores));
      if (fold == "add") {
        EXPECT_TRUE(vectors.compare("out.fold.add.bias", terms.bias));
      }
    }
    const Tensor result = without_padding(
        vectors, attention(inputs[0], inputs[1], inputs[2], terms, key_mask(vectors), 0.0));
    EXPECT_TRUE(vectors.compare("out." + form.name + ".attn", result));
    loss = loss + (result * vectors.tensor("cot." + form.name + ".attn")).sum();
  }
  EXPECT_TRUE(vectors.compare("out.loss", loss.view({1})));
  loss.backward();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(vectors.compare(std::string("grad.") + "qkv"[i], inputs[i].grad()));
  }
  for (const auto& encoding : encodings) {
    for (const auto& [name, gradient] : gradients_of(*encoding)) {
      gradients[name] = gradients.count(name) ? gradients[name] + gradient : gradient;
    }
  }
  EXPECT_EQ(gradients.size(), vectors.keys("param.").size());
  for (const auto& [name, gradient] : gradients) {
    EXPECT_TRUE(vectors.compare("grad." + name, gradient));
  }
}

TEST_P(RefvecPositions, ArticleWithPositionsAdded) { check_article("add", GetParam()); }
TEST_P(RefvecPositions, ArticleByConcatenation) { check_article("concat", GetParam()); }

TEST_P(RefvecPositions, TupeBucketsWithThoseOfCls) {
  const Refvec vectors = Refvec::load("tupe_r", GetParam());
  const std::int64_t tokens = vectors.integer("seq"), bins = vectors.integer("rel_bins");
  const T5Buckets buckets(bins, vectors.integer("max_distance"));
  Tensor table = torch::empty({tokens, tokens}, torch::kInt64);
  for (std::int64_t i = 0; i < tokens; ++i) {
    for (std::int64_t j = 0; j < tokens; ++j) {
      table[i][j] = i == 0 ? bins / 2 : (j == 0 ? bins : buckets.of(j - i));
    }
  }
  EXPECT_TRUE(vectors.compare("out.bucket", table));
}

INSTANTIATE_TEST_SUITE_P(Precisions, RefvecPositions,
                         testing::Values(torch::kFloat64, torch::kFloat32), [](const auto& tested) {
                           return tested.param == torch::kFloat64 ? "Float64" : "Float32";
                         });

}  // namespace
}  // namespace tupelo::refvec_positions_test
