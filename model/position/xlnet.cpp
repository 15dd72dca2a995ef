// Transformer-XL's and XLNet's relative attention: keys made of the distance's sinusoid, and
// trained vectors that stand for the query's position (Dai et al., ACL 2019; Yang et al., NeurIPS
// 2019).
#include <algorithm>
#include <stdexcept>

#include "model/layers.h"
#include "model/position/kinds.h"
#include "model/position/length_cache.h"
#include "model/position/option_reader.h"
#include "model/position/placed_encoding.h"
#include "model/position/relative_line.h"
#include "model/position/sinusoidal.h"

namespace tupelo {
namespace {

using torch::Tensor;

std::vector<PositionOptionKind> xlnet_options() {
  return {{"r_dim", "hidden", {}, "width of the sinusoid, an even number", 2},
          {"clamp_len", "none", {}, "farther distances count as this one"},
          {"fold",
           "auto",
           {"auto", "relative", "concat"},
           "how it reaches attention, with equal results: a vector per distance, or r_dim more "
           "features of queries and keys where nothing is clamped; auto: features when r_dim is at "
           "most 2D"}};
}

class Xlnet : public PlacedEncoding {
 public:
  Xlnet(const PositionContext& context, const OptionReader& reader)
      : context_(context),
        width_(reader.integer("r_dim", context.hidden_size())),
        clamp_(reader.integer("clamp_len", kAnyLength)),
        fold_(reader.text("fold") == "concat" ||
              (reader.text("fold") == "auto" && width_ <= 2 * context.head_width)) {
    if (width_ % 2 != 0) {
      throw std::invalid_argument("position encoding xlnet: r_dim=" + std::to_string(width_) +
                                  " is odd; it must be even");
    }
    projection_ = register_module(
        "r", std::make_shared<Linear>(width_, context.hidden_size(), /*with_bias=*/false));
    const Tensor zeros = torch::zeros({context.heads, context.head_width});
    content_offset_ = register_parameter("r_w_bias", zeros.clone());
    position_offset_ = register_parameter("r_r_bias", zeros.clone());
  }

  void initialize(double standard_deviation, const at::Generator& generator) override {
    projection_->initialize(standard_deviation, generator);
    fill_normal(content_offset_, standard_deviation, generator);
    fill_normal(position_offset_, standard_deviation, generator);
  }

  std::vector<std::string> undecayed_parameters() const override {
    return {"r_w_bias", "r_r_bias"};
  }
  ContentBiases content_biases() const override { return {false, false, false}; }

  AttentionTerms terms(std::int64_t tokens) override {
    AttentionTerms terms = plain_attention_terms(context_.head_width);
    terms.query_offset = content_offset_.unsqueeze(1);
    terms.relative_query_offset = position_offset_.unsqueeze(1);
    if (fold_ && tokens - 1 <= clamp_) {
      add_phases(tokens, terms);
    } else {
      terms.relative_key = distance_keys(tokens);
    }
    return terms;
  }

  // The trained vector's product with the distance's key does not depend on the input.
  PositionPicture picture(std::int64_t tokens) override {
    const Tensor products = at_least_float32(distance_keys(tokens))
                                .matmul(at_least_float32(position_offset_).unsqueeze(-1));
    PositionPicture picture;
    picture.distance_bias = clipped_line(products.squeeze(-1).t(), tokens) *
                            plain_attention_terms(context_.head_width).scale;
    return picture;
  }

  double terms_flops(std::int64_t tokens) const override {
    const std::int64_t rows = fold_ && tokens - 1 <= clamp_ ? 0 : 2 * reach(tokens) + 1;
    return 2.0 * static_cast<double>(rows) * static_cast<double>(width_) *
           static_cast<double>(context_.hidden_size());
  }

 private:
  std::int64_t reach(std::int64_t tokens) const { return std::min(tokens - 1, clamp_); }

  // [T,r_dim] float64 of first, first + step, ...
  Tensor sinusoids(std::int64_t first, std::int64_t rows, std::int64_t step) const {
    return sinusoidal_table(torch::arange(rows, torch::kInt64) * step + first, width_,
                            SinusoidLayout::kConcat);
  }

  // [N,2R+1,D]: row r + R from the sinusoid of query - key, which is -r.
  Tensor distance_keys(std::int64_t tokens) {
    const std::int64_t farthest = reach(tokens), rows = 2 * farthest + 1;
    const Tensor& table =
        table_.get(rows, device(), wide_type(), [&] { return sinusoids(farthest, rows, -1); });
    const Tensor weight = projection_->weight;
    return at::linear(table.to(weight.scalar_type()), weight)
        .view({rows, context_.heads, context_.head_width})
        .transpose(0, 1);
  }

  // The sinusoid of i - j is that of -j, turned forward by i: back by the angles of negative i.
  void add_phases(std::int64_t tokens, AttentionTerms& terms) {
    const Tensor turns = turns_.get(tokens, device(), torch::kFloat64, [&] {
      return sinusoids(0, tokens, -1).view({tokens, 2, -1}).movedim(1, 0).contiguous();
    });
    terms.phase_sin = turns[0];
    terms.phase_cos = turns[1];
    terms.phase_layout = RotationLayout::kHalf;
    terms.phase_map = projection_->weight.view({context_.heads, context_.head_width, width_});
    terms.phase_key =
        keys_.get(tokens, device(), wide_type(), [&] { return sinusoids(0, tokens, -1); });
  }

  PositionContext context_;
  std::int64_t width_, clamp_;
  bool fold_;
  std::shared_ptr<Linear> projection_;
  Tensor content_offset_, position_offset_;  // [N,D]
  LengthCache table_;                        // [2R+1,r_dim]
  LengthCache turns_;                        // [2,T,r_dim/2]
  LengthCache keys_;                         // [T,r_dim]
};

}  // namespace

PositionEncodingKind xlnet_kind() {
  return {
      "xlnet",
      "keys from the distance's sinusoid, trained vectors for the query's position; share=layer "
      "is XLNet's untie_r",
      xlnet_options(),
      {},
      [](const PositionContext& context,
         const PositionOptions& given) -> std::shared_ptr<PositionEncoding> {
        return std::make_shared<Xlnet>(context, OptionReader("xlnet", xlnet_options(), given));
      }};
}

}  // namespace tupelo
