// DeBERTa: contents attend to vectors of the distance and vectors of the distance to contents (He,
// Liu, Gao, Chen, "DeBERTa: Decoding-enhanced BERT with Disentangled Attention", ICLR 2021).
#include <algorithm>
#include <cmath>

#include "model/layers.h"
#include "model/position/kinds.h"
#include "model/position/option_reader.h"

namespace tupelo {
namespace {

using torch::Tensor;

std::vector<PositionOptionKind> deberta_options() {
  return {{"terms",
           "c2p+p2c",
           {"c2p+p2c", "c2p", "p2c"},
           "beside content to content: content to position, position to content"},
          {"p2c_index",
           "code",
           {"code", "paper"},
           "position to content by the distance from key to query as in the released code, or from "
           "query to key as in the paper"},
          {"span", "longest", {}, "distances from -span to span - 1 have vectors of their own"}};
}

class Deberta : public PositionEncoding {
 public:
  Deberta(const PositionContext& context, const OptionReader& reader)
      : context_(context),
        span_(reader.integer("span", context.max_positions)),
        mirrored_(reader.text("p2c_index") == "paper") {
    reader.needs("p2c_index", "terms", {"c2p+p2c", "p2c"});
    const std::int64_t hidden = context.hidden_size();
    table_ = register_module("rel_embeddings", std::make_shared<Embedding>(2 * span_, hidden));
    if (reader.text("terms") != "p2c") {
      key_projection_ = register_module(
          "pos_proj", std::make_shared<Linear>(hidden, hidden, /*with_bias=*/false));
    }
    if (reader.text("terms") != "c2p") {
      query_projection_ = register_module("pos_q_proj", std::make_shared<Linear>(hidden, hidden));
    }
  }

  void initialize(double standard_deviation, const at::Generator& generator) override {
    table_->initialize(standard_deviation, generator);
    for (const auto& projection : {key_projection_, query_projection_}) {
      if (projection) {
        projection->initialize(standard_deviation, generator);
      }
    }
  }

  std::vector<std::string> undecayed_parameters() const override {
    return query_projection_ ? std::vector<std::string>{"pos_q_proj.bias"}
                             : std::vector<std::string>{};
  }
  ContentBiases content_biases() const override { return {true, /*key=*/false, true}; }

  std::vector<ResizableTable> resizable_tables() const override {
    return {{"rel_embeddings.weight", ResizableTable::Rows::kDistances, 0}};
  }

  AttentionTerms terms(std::int64_t tokens) override {
    const Tensor rows = rows_within(tokens);
    AttentionTerms terms;
    terms.scale = 1.0 / std::sqrt((1.0 + projections()) * static_cast<double>(context_.head_width));
    // Rows ascend with query - key, vectors of the layer with key - query.
    if (key_projection_) {
      terms.relative_key = vectors(key_projection_->forward(rows), tokens).flip(1);
    }
    if (query_projection_) {
      const Tensor by_query_minus_key = vectors(query_projection_->forward(rows), tokens);
      terms.relative_query = mirrored_ ? by_query_minus_key : by_query_minus_key.flip(1);
    }
    return terms;
  }

  double terms_flops(std::int64_t tokens) const override {
    const auto hidden = static_cast<double>(context_.hidden_size());
    return projections() * 2.0 * static_cast<double>(row_count(tokens)) * hidden * hidden;
  }

 private:
  double projections() const {
    return (key_projection_ ? 1.0 : 0.0) + (query_projection_ ? 1.0 : 0.0);
  }
  std::int64_t reach(std::int64_t tokens) const { return std::min(tokens - 1, span_); }
  std::int64_t row_count(std::int64_t tokens) const {
    return std::min(2 * reach(tokens) + 1, 2 * span_);
  }

  // Distances -R .. R that occur, without the last when the table ends before it.
  Tensor rows_within(std::int64_t tokens) const {
    return table_->weight.narrow(0, span_ - reach(tokens), row_count(tokens));
  }

  // [N,2R+1,D]
  Tensor vectors(const Tensor& rows, std::int64_t tokens) const {
    const Tensor heads =
        rows.view({rows.size(0), context_.heads, context_.head_width}).transpose(0, 1);
    const std::int64_t missing = 2 * reach(tokens) + 1 - heads.size(1);
    return missing == 0 ? heads : at::cat({heads, heads.narrow(1, heads.size(1) - 1, 1)}, 1);
  }

  PositionContext context_;
  std::int64_t span_;
  bool mirrored_;
  std::shared_ptr<Embedding> table_;  // [2k,H], row d + k for distance d = query - key
  std::shared_ptr<Linear> key_projection_, query_projection_;
};

}  // namespace

PositionEncodingKind deberta_kind() {
  return {"deberta",
          "contents attend to vectors of the distance, and these to contents, by maps of their own",
          deberta_options(),
          {},
          [](const PositionContext& context,
             const PositionOptions& given) -> std::shared_ptr<PositionEncoding> {
            return std::make_shared<Deberta>(context,
                                             OptionReader("deberta", deberta_options(), given));
          }};
}

}  // namespace tupelo
