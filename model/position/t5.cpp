// T5's bias: one trained number per head and bucket of the distance (Raffel et al., "Exploring the
// Limits of Transfer Learning with a Unified Text-to-Text Transformer", JMLR 2020).
#include "model/layers.h"
#include "model/position/kinds.h"
#include "model/position/option_reader.h"
#include "model/position/relative_line.h"
#include "model/position/t5_buckets.h"
#include "model/position/toeplitz.h"

namespace tupelo {
namespace {

std::vector<PositionOptionKind> t5_options() {
  return {{"scale",
           "default",
           {"default", "none"},
           "of the product of contents: 1/sqrt(D), or 1 as in T5 itself"},
          {"rel_bins", "32", {}, "buckets of the distance", 4, false, 1 << 20, kBucketCounts},
          {"max_distance", "128", {}, "distances from here on share a bucket", 2},
          {"rel_init", "normal", {"normal", "zero"}, "first values of the bias"}};
}

class T5Bias : public PositionEncoding {
 public:
  T5Bias(const PositionContext& context, const OptionReader& reader)
      : context_(context),
        unscaled_(reader.text("scale") == "none"),
        zero_bias_(reader.text("rel_init") == "zero"),
        buckets_(reader.integer("rel_bins")),
        line_(buckets_, reader.integer("max_distance")) {
    relative_bias_ = register_module("relative_attention_bias",
                                     std::make_shared<Embedding>(buckets_, context.heads));
  }

  void initialize(double standard_deviation, const at::Generator& generator) override {
    relative_bias_->initialize(zero_bias_ ? 0.0 : standard_deviation, generator);
  }

  std::vector<std::string> undecayed_parameters() const override {
    return {"relative_attention_bias.weight"};
  }

  AttentionTerms terms(std::int64_t tokens) override {
    AttentionTerms terms = plain_attention_terms(context_.head_width);
    if (unscaled_) {
      terms.scale = 1.0;
    }
    terms.bias = toeplitz(line(tokens));
    return terms;
  }

  PositionPicture picture(std::int64_t tokens) override {
    PositionPicture picture;
    picture.distance_bias = line(tokens);
    return picture;
  }

  double terms_flops(std::int64_t tokens) const override {
    return 2.0 * static_cast<double>(2 * tokens - 1) * static_cast<double>(buckets_) *
           static_cast<double>(context_.heads);
  }

 private:
  torch::Tensor line(std::int64_t tokens) {
    return line_(at_least_float32(relative_bias_->weight), tokens);
  }

  PositionContext context_;
  bool unscaled_, zero_bias_;
  std::int64_t buckets_;
  T5RelativeLine line_;
  std::shared_ptr<Embedding> relative_bias_;
};

}  // namespace

PositionEncodingKind t5_kind() {
  return {"t5",
          "a trained bias per head in logarithmic buckets of the distance",
          t5_options(),
          {},
          [](const PositionContext& context,
             const PositionOptions& given) -> std::shared_ptr<PositionEncoding> {
            return std::make_shared<T5Bias>(context, OptionReader("t5", t5_options(), given));
          }};
}

}  // namespace tupelo
