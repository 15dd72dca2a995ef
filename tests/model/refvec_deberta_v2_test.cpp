// DeBERTa-v2's layer and mask decoder held to their reference vectors: once written out, once as
// models run it.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "model/encoder.h"
#include "model/encoder_layer.h"
#include "model/position/log_buckets.h"
#include "model/token_layout.h"
#include "tests/model/formulas.h"
#include "tests/model/refvec_case.h"

namespace tupelo::refvec_deberta_v2_test {
namespace {

using torch::Tensor;

// The parameters of a layer under the names of the vectors.
struct LayerParameters {
  explicit LayerParameters(const Refvec& vectors) {
    for (const std::string& name : vectors.names_after("param.layer.")) {
      values[name] = vectors.tensor("param.layer." + name).requires_grad_();
    }
  }
  Tensor linear(const std::string& name, const Tensor& input) const {
    return torch::matmul(input, values.at(name + ".weight").t()) + values.at(name + ".bias");
  }
  Tensor norm(const std::string& name, const Tensor& input, double epsilon) const {
    const Tensor centered = input - input.mean(-1, true);
    const Tensor deviation = (centered.square().mean(-1, true) + epsilon).sqrt();
    return centered / deviation * values.at(name + ".weight") + values.at(name + ".bias");
  }
  std::map<std::string, Tensor> values;
};

Tensor in_heads(const Tensor& hidden, std::int64_t heads) {
  return hidden.view({hidden.size(0), hidden.size(1), heads, -1}).transpose(1, 2);
}

// What a layer makes of rows of the table.
AttentionTerms with_vectors(AttentionTerms terms, const LayerParameters& layer,
                            std::int64_t heads) {
  const Tensor rows = terms.relative_rows.unsqueeze(0);
  if (terms.relative_rows_as_keys) {
    terms.relative_key = in_heads(layer.linear("attention.self.key_proj", rows), heads)[0];
  }
  if (terms.relative_rows_as_queries) {
    terms.relative_query = in_heads(layer.linear("attention.self.query_proj", rows), heads)[0];
  }
  terms.relative_rows = Tensor();
  return terms;
}

class PlainLayer {
 public:
  PlainLayer(const RefvecCase& given, const AttentionTerms& terms)
      : parameters_(given.vectors),
        heads_(given.context().heads),
        epsilon_(given.context().layer_norm_epsilon),
        terms_(with_vectors(terms, parameters_, heads_)),
        mask_(given.key_mask()) {}

  Tensor scores(const Tensor& hidden) const {
    return plain_scores(heads("query_proj", hidden), heads("key_proj", hidden), terms_);
  }

  Tensor operator()(const Tensor& hidden, const Tensor& memory) const {
    const Tensor context = plain_attention(heads("query_proj", hidden), heads("key_proj", memory),
                                           heads("value_proj", memory), terms_, mask_);
    const Tensor dense =
        parameters_.linear("attention.output.dense", context.transpose(1, 2).flatten(2));
    const Tensor attended =
        parameters_.norm("attention.output.LayerNorm", hidden + dense, epsilon_);
    const Tensor wide = torch::gelu(parameters_.linear("intermediate.dense", attended));
    return parameters_.norm("output.LayerNorm", attended + parameters_.linear("output.dense", wide),
                            epsilon_);
  }

  std::map<std::string, Tensor> gradients() const {
    std::map<std::string, Tensor> result;
    for (const auto& [name, value] : parameters_.values) result["layer." + name] = value.grad();
    return result;
  }

 private:
  Tensor heads(const std::string& name, const Tensor& hidden) const {
    return in_heads(parameters_.linear("attention.self." + name, hidden), heads_);
  }

  LayerParameters parameters_;
  std::int64_t heads_;
  double epsilon_;
  AttentionTerms terms_;
  Tensor mask_;
};

class RefvecDebertaV2 : public testing::TestWithParam<torch::ScalarType> {
 protected:
  RefvecDebertaV2()
      : given_("deberta_v2", GetParam()),
        absolute_(given_.vectors.tensor("param.absolute").requires_grad_()),
        encoding_(given_.encoding(
            "deberta-v2",
            {{"buckets", std::to_string(given_.vectors.integer("buckets"))},
             {"max_distance", std::to_string(given_.vectors.integer("max_relative"))}},
            {{"pos_ln.weight", "rel_ln.weight"}, {"pos_ln.bias", "rel_ln.bias"}})) {
    const std::int64_t line = given_.vectors.integer("line");
    given_.compare("line_bucket", buckets_of(given_.vectors.integer("buckets"),
                                             given_.vectors.integer("max_relative"), line));
    given_.compare("line_bucket_256_512", buckets_of(256, 512, line));
  }

  // Of query - key = -line .. line.
  static Tensor buckets_of(std::int64_t count, std::int64_t max_distance, std::int64_t line) {
    const LogBuckets buckets(count, max_distance);
    Tensor values = torch::empty({2 * line + 1}, torch::kInt64);
    for (std::int64_t distance = -line; distance <= line; ++distance) {
      values[distance + line] = buckets.of(distance);
    }
    return values;
  }

  AttentionTerms terms() { return encoding_->terms(given_.vectors.integer("seq")); }

  // The row of the table that each pair of tokens uses, read off the rows that the encoding chose.
  Tensor rows_used(const AttentionTerms& terms) const {
    const auto parameters = encoding_->named_parameters();
    const Tensor table = torch::layer_norm(parameters["rel_embeddings.weight"], {table_width()},
                                           parameters["pos_ln.weight"], parameters["pos_ln.bias"],
                                           given_.context().layer_norm_epsilon);
    const Tensor chosen = torch::cdist(terms.relative_rows, table).argmin(1);
    return chosen
        .index_select(
            0, distance_index(given_.vectors.integer("seq"), (chosen.size(0) - 1) / 2).flatten())
        .view({given_.vectors.integer("seq"), -1});
  }
  std::int64_t table_width() const { return given_.context().hidden_size(); }

  // y, and the mask decoder's two steps: queries and residual change, keys and values stay.
  template <typename Layer>
  void run(const Layer& layer) {
    const Tensor& hidden = given_.input("x");
    given_.compare_rows("y", layer(hidden, hidden));
    const Tensor first = layer(hidden + absolute_, hidden);
    given_.compare_rows("emd.1", first);
    given_.compare_rows("emd.2", layer(first, hidden));
  }

  RefvecCase given_;
  Tensor absolute_;
  std::shared_ptr<PositionEncoding> encoding_;
};

TEST_P(RefvecDebertaV2, LayerWrittenOut) {
  const AttentionTerms terms = this->terms();
  given_.compare("delta", rows_used(terms));
  const PlainLayer layer(given_, terms);
  given_.compare("scores", layer.scores(given_.input("x")));
  run(layer);
  given_.backward();
  for (const auto& [name, gradient] : layer.gradients()) given_.compare_gradient(name, gradient);
  given_.compare_gradient("absolute", absolute_.grad());
  given_.finish();
}

TEST_P(RefvecDebertaV2, LayerOfTheModel) {
  EncoderOptions options;
  options.heads = given_.context().heads;
  options.hidden_size = given_.context().hidden_size();
  options.intermediate_size = given_.vectors.integer("inter");
  options.layer_norm_epsilon = given_.context().layer_norm_epsilon;
  EncoderLayer model(options, encoding_->content_biases());
  model.to(GetParam());
  RefvecCase::Names names;
  for (const auto& parameter : model.named_parameters()) {
    std::string name = "layer." + parameter.key();
    for (const std::string map : {"query", "key", "value"}) {
      const auto at = name.find("." + map + ".");
      if (at != std::string::npos) name.replace(at, map.size() + 2, "." + map + "_proj.");
    }
    names[parameter.key()] = name;
  }
  given_.adopt(model, names);
  const Tensor mask = given_.key_mask();
  const TokenLayout layout = TokenLayout::rows(torch::zeros(mask.sizes(), torch::kInt64), mask);
  const AttentionTerms terms = this->terms();
  run([&](const Tensor& hidden, const Tensor& memory) {
    return model.forward(hidden, memory.is_same(hidden) ? Tensor() : memory, terms, layout);
  });
  given_.backward();
  given_.compare_gradient("absolute", absolute_.grad());
  given_.compare("delta", rows_used(terms));
  given_.compare("scores", PlainLayer(given_, terms).scores(given_.input("x")));
  given_.finish();
}

INSTANTIATE_TEST_SUITE_P(Precisions, RefvecDebertaV2,
                         testing::Values(torch::kFloat64, torch::kFloat32), [](const auto& tested) {
                           return tested.param == torch::kFloat64 ? "Float64" : "Float32";
                         });

}  // namespace
}  // namespace tupelo::refvec_deberta_v2_test
