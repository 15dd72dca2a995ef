// Encodings of the distance held to their reference vectors, by the plain formula of their terms
// and by the attention that models use.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <string>
#include <tuple>

#include "model/attention.h"
#include "model/position/sinusoidal.h"
#include "model/position/t5_buckets.h"
#include "tests/model/formulas.h"
#include "tests/model/refvec_case.h"

namespace tupelo::refvec_relative_test {
namespace {

using torch::Tensor;

enum class Route { kPlain, kModel };

class RefvecRelative : public testing::TestWithParam<std::tuple<torch::ScalarType, Route>> {
 protected:
  RefvecCase load(const std::string& name) const {
    return RefvecCase(name, std::get<0>(GetParam()));
  }
  Tensor scores(const RefvecCase& given, const AttentionTerms& terms) const {
    const Tensor &query = given.input("q"), &key = given.input("k");
    return std::get<1>(GetParam()) == Route::kPlain ? plain_scores(query, key, terms)
                                                    : attention_scores(query, key, terms, {});
  }
  void check_attention(RefvecCase& given, const std::string& name,
                       const AttentionTerms& terms) const {
    const Tensor &query = given.input("q"), &key = given.input("k"), &value = given.input("v");
    given.compare_rows(name, std::get<1>(GetParam()) == Route::kPlain
                                 ? plain_attention(query, key, value, terms, given.key_mask())
                                 : attention(query, key, value, terms, given.key_mask(), 0.0));
  }
};

Tensor bucket_matrix(const T5Buckets& buckets, std::int64_t tokens) {
  const Tensor line = torch::tensor(buckets.line(tokens), torch::kInt64);
  return line.index_select(0, distance_index(tokens, tokens - 1).flatten()).view({tokens, tokens});
}

TEST_P(RefvecRelative, T5) {
  RefvecCase given = load("t5_bias");
  const std::int64_t bins = given.vectors.integer("buckets"), tokens = given.vectors.integer("seq");
  const std::int64_t farthest = given.vectors.integer("max_distance");
  const T5Buckets buckets(bins, farthest);
  given.compare("bucket", bucket_matrix(buckets, tokens));
  const std::int64_t line = given.vectors.integer("line") + 1;
  given.compare("line_bucket", torch::tensor(buckets.line(line), torch::kInt64));
  given.compare("line_bucket_default", torch::tensor(T5Buckets(32, 128).line(line), torch::kInt64));
  for (const std::string form : {"scaled", "unscaled"}) {
    const auto encoding = given.encoding("t5",
                                         {{"rel_bins", std::to_string(bins)},
                                          {"max_distance", std::to_string(farthest)},
                                          {"scale", form == "scaled" ? "default" : "none"}},
                                         {{"relative_attention_bias.weight", "table"}});
    const AttentionTerms terms = encoding->terms(tokens);
    given.compare("bias", terms.bias);
    given.compare(form + ".scores", scores(given, terms));
    check_attention(given, form + ".attn", terms);
  }
  given.backward();
  given.finish();
}

Tensor slopes_of(std::int64_t heads) {
  PositionContext context;
  context.heads = heads;
  context.head_width = 4;
  const auto encoding = make_position_encoding("alibi", context, {});
  encoding->to(torch::kFloat64);
  return -encoding->terms(2).bias.select(1, 0).select(1, 1);
}

TEST_P(RefvecRelative, Alibi) {
  RefvecCase given = load("alibi");
  const std::int64_t tokens = given.vectors.integer("seq");
  given.compare("slopes", slopes_of(given.vectors.integer("heads")));
  for (const std::string& heads : given.vectors.names_after("out.slopes_for.")) {
    given.compare("slopes_for." + heads, slopes_of(std::stoll(heads)));
  }
  for (const std::string form : {"symmetric", "split", "learned"}) {
    const auto encoding = given.encoding("alibi", {{"form", form}});
    EXPECT_EQ(encoding->parameters().size(), form == "learned" ? 2u : 0u);
    const AttentionTerms terms = encoding->terms(tokens);
    EXPECT_EQ(terms.bias_blocks, form == "split");
    if (form == "split") {
      given.compare("split.blocked", terms.bias.isinf().to(torch::kInt64));
      const Tensor stored = given.vectors.tensor("out.split.bias").to(terms.bias.scalar_type());
      given.compare("split.bias", torch::where(terms.bias.isinf(), stored, terms.bias));
    } else {
      given.compare(form + ".bias", terms.bias);
    }
    check_attention(given, form + ".attn", terms);
  }
  given.backward();
  given.finish();
}

TEST_P(RefvecRelative, Shaw) {
  RefvecCase given = load("shaw");
  const std::int64_t tokens = given.vectors.integer("seq"), clip = given.vectors.integer("clip");
  given.compare("index", distance_index(tokens, clip));
  for (const std::string values : {"true", "false"}) {
    const auto encoding =
        given.encoding("shaw", {{"clip", std::to_string(clip)}, {"values", values}});
    const AttentionTerms terms = encoding->terms(tokens);
    EXPECT_EQ(terms.relative_key.size(1), 2 * clip + 1);
    given.compare("scores", scores(given, terms));
    check_attention(given, values == "true" ? "attn" : "keys_only.attn", terms);
  }
  given.backward();
  given.finish();
}

TEST_P(RefvecRelative, Nezha) {
  RefvecCase given = load("nezha");
  const std::int64_t tokens = given.vectors.integer("seq");
  const auto encoding =
      given.encoding("nezha", {{"clip", std::to_string(given.vectors.integer("clip"))}});
  const AttentionTerms terms = encoding->terms(tokens);
  given.compare("table", terms.relative_key.squeeze(0));
  given.compare("scores", scores(given, terms));
  check_attention(given, "attn", terms);
  given.backward();
  given.finish();
}

// What is left of the scores when one side of the product of contents is zero.
Tensor part_of(const AttentionTerms& terms, const Tensor& query, const Tensor& key) {
  return plain_scores(query, key, terms) / terms.scale;
}

TEST_P(RefvecRelative, Xlnet) {
  for (const std::string fold : {"relative", "concat"}) {
    RefvecCase given = load("xlnet");
    const std::int64_t tokens = given.vectors.integer("seq"), width = given.vectors.integer("dim");
    given.compare("relative_embedding", sinusoidal_table(given.vectors.tensor("in.relative"), width,
                                                         SinusoidLayout::kConcat)
                                            .to(given.vectors.precision()));
    const auto encoding =
        given.encoding("xlnet", {{"r_dim", std::to_string(width)}, {"fold", fold}});
    const AttentionTerms terms = encoding->terms(tokens);
    EXPECT_EQ(terms.phase_key.defined(), fold == "concat");
    AttentionTerms contents = terms, positions = terms;
    contents.relative_key = contents.phase_key = Tensor();
    positions.query_offset = Tensor();
    const Tensor &query = given.input("q"), &key = given.input("k");
    given.compare("content", part_of(contents, query, key));
    given.compare("position", part_of(positions, query, torch::zeros_like(key)));
    given.compare("scores", scores(given, terms));
    check_attention(given, "attn", terms);
    given.backward();
    given.finish();
  }
}

// Which row of the table each pair of tokens uses, read off an encoding whose vectors are their row
// numbers.
Tensor rows_used(const PositionContext& context, std::int64_t span, std::int64_t tokens) {
  const auto encoding =
      make_position_encoding("deberta", context, {{"span", std::to_string(span)}});
  torch::NoGradGuard no_grad;
  auto parameters = encoding->named_parameters();
  const std::int64_t hidden = context.hidden_size();
  parameters["pos_proj.weight"].copy_(torch::eye(hidden));
  parameters["rel_embeddings.weight"].copy_(
      torch::arange(2 * span).unsqueeze(1).expand({2 * span, hidden}));
  return rows_of_distances(encoding->terms(tokens).relative_key, tokens)
      .select(3, 0)
      .select(0, 0)
      .to(torch::kInt64);
}

TEST_P(RefvecRelative, Deberta) {
  RefvecCase given = load("deberta_v1");
  const std::int64_t tokens = given.vectors.integer("seq"), span = given.vectors.integer("span");
  given.compare("delta", rows_used(given.context(), span, tokens));
  const auto make = [&](const std::string& terms, const std::string& index) {
    return given.encoding("deberta",
                          {{"span", std::to_string(span)}, {"terms", terms}, {"p2c_index", index}});
  };
  const Tensor &query = given.input("q"), &key = given.input("k");
  const Tensor nothing = torch::zeros_like(query);

  const auto both = make("c2p+p2c", "code");
  const AttentionTerms terms = both->terms(tokens);
  EXPECT_FALSE(both->content_biases().key);
  given.compare("c2p", part_of(terms, query, nothing));
  given.compare("p2c", part_of(terms, nothing, key));
  given.compare("scores", scores(given, terms));
  check_attention(given, "attn", terms);

  const AttentionTerms paper = make("c2p+p2c", "paper")->terms(tokens);
  given.compare("p2c_paper", part_of(paper, nothing, key));
  given.compare("c2p", part_of(paper, query, nothing));

  check_attention(given, "c2p_only.attn", make("c2p", "code")->terms(tokens));

  const AttentionTerms only_p2c = make("p2c", "code")->terms(tokens);
  given.compare("p2c", part_of(only_p2c, nothing, key));
  EXPECT_DOUBLE_EQ(only_p2c.scale, 1.0 / std::sqrt(2.0 * given.vectors.integer("head_dim")));
  given.backward();
  given.finish();
}

INSTANTIATE_TEST_SUITE_P(Precisions, RefvecRelative,
                         testing::Combine(testing::Values(torch::kFloat64, torch::kFloat32),
                                          testing::Values(Route::kPlain, Route::kModel)),
                         [](const auto& tested) {
                           const std::string precision =
                               std::get<0>(tested.param) == torch::kFloat64 ? "Float64" : "Float32";
                           return precision +
                                  (std::get<1>(tested.param) == Route::kPlain ? "Plain" : "Model");
                         });

}  // namespace
}  // namespace tupelo::refvec_relative_test
