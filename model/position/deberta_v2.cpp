// DeBERTa-v2 and v3: DeBERTa with logarithmic buckets of the distance, whose vectors go through the
// layers' own query and key maps (He, Gao, Chen, "DeBERTaV3", ICLR 2023, and microsoft/DeBERTa).
#include <algorithm>
#include <cmath>

#include "model/layers.h"
#include "model/position/kinds.h"
#include "model/position/length_cache.h"
#include "model/position/log_buckets.h"
#include "model/position/option_reader.h"

namespace tupelo {
namespace {

using torch::Tensor;

std::vector<PositionOptionKind> deberta_v2_options() {
  return {{"terms",
           "c2p+p2c",
           {"c2p+p2c", "c2p", "p2c"},
           "beside content to content: content to position, position to content"},
          {"buckets", "256", {}, "buckets of the distance on each side, an even number", 4},
          {"max_distance", "longest", {}, "distances from here on share a bucket", 2}};
}

class DebertaV2 : public PositionEncoding {
 public:
  DebertaV2(const PositionContext& context, const OptionReader& reader)
      : context_(context),
        buckets_(reader.integer("buckets")),
        max_distance_(
            reader.integer("max_distance", std::max<std::int64_t>(2, context.max_positions))),
        keys_(reader.text("terms") != "p2c"),
        queries_(reader.text("terms") != "c2p"),
        bucket_of_(buckets_, max_distance_) {
    table_ = register_module("rel_embeddings",
                             std::make_shared<Embedding>(2 * buckets_, context.hidden_size()));
    norm_ = register_module(
        "pos_ln", std::make_shared<LayerNorm>(context.hidden_size(), context.layer_norm_epsilon));
  }

  void initialize(double standard_deviation, const at::Generator& generator) override {
    table_->initialize(standard_deviation, generator);
    norm_->initialize();
  }

  std::vector<std::string> undecayed_parameters() const override {
    return {"pos_ln.weight", "pos_ln.bias"};
  }

  PositionOptions pinned_options() const override {
    return {{"max_distance", std::to_string(max_distance_)}};
  }

  AttentionTerms terms(std::int64_t tokens) override {
    AttentionTerms terms;
    const double products = 1.0 + keys_ + queries_;
    terms.scale = 1.0 / std::sqrt(products * static_cast<double>(context_.head_width));
    const Tensor rows = norm_->forward(table_->weight);
    // A product with a one-hot matrix copies exactly, and its backward adds without atomics.
    terms.relative_rows = at::matmul(selector(tokens, rows), rows);
    terms.relative_rows_as_keys = keys_;
    terms.relative_rows_as_queries = queries_;
    return terms;
  }

  double terms_flops(std::int64_t tokens) const override {
    constexpr double kNormPerEntry = 8.0;
    const double products = 2.0 * static_cast<double>(2 * reach(tokens) + 1);
    return (kNormPerEntry + products) * 2.0 * static_cast<double>(buckets_) *
           static_cast<double>(context_.hidden_size());
  }

 private:
  // All farther distances share the last buckets.
  std::int64_t reach(std::int64_t tokens) const { return std::min(tokens, max_distance_) - 1; }

  // [2R+1,2 buckets]: row r + R chooses the bucket of query - key = -r.
  Tensor selector(std::int64_t tokens, const Tensor& like) {
    const std::int64_t farthest = reach(tokens);
    return selector_.get(farthest, like.device(), like.scalar_type(), [&] {
      std::vector<std::int64_t> chosen;
      for (std::int64_t distance = farthest; distance >= -farthest; --distance) {
        chosen.push_back(bucket_of_.of(distance) + buckets_);
      }
      const Tensor indices = torch::tensor(chosen, torch::kInt64).unsqueeze(1);
      return torch::zeros({indices.size(0), 2 * buckets_}).scatter_(1, indices, 1.0);
    });
  }

  PositionContext context_;
  std::int64_t buckets_, max_distance_;
  bool keys_, queries_;
  LogBuckets bucket_of_;
  LengthCache selector_{2};
  std::shared_ptr<Embedding> table_;  // row bucket + buckets
  std::shared_ptr<LayerNorm> norm_;
};

}  // namespace

PositionEncodingKind deberta_v2_kind() {
  return {"deberta-v2",
          "as deberta, in logarithmic buckets of the distance, by the layers' own maps",
          deberta_v2_options(),
          {},
          [](const PositionContext& context,
             const PositionOptions& given) -> std::shared_ptr<PositionEncoding> {
            return std::make_shared<DebertaV2>(
                context, OptionReader("deberta-v2", deberta_v2_options(), given));
          }};
}

}  // namespace tupelo
