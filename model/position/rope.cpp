// RoPE: queries and keys turned by an angle proportional to their position (Su et al., "RoFormer",
// 2021).
#include <algorithm>
#include <stdexcept>

#include "model/position/kinds.h"
#include "model/position/length_cache.h"
#include "model/position/option_reader.h"
#include "model/position/placed_encoding.h"
#include "model/position/rotation_frequencies.h"

namespace tupelo {
namespace {

using torch::Tensor;

std::vector<PositionOptionKind> rope_options() {
  return {{"layout",
           "interleaved",
           {"interleaved", "half"},
           "pairs of features: (2m,2m+1), or (m,m+D/2); weights of one do not fit the other"},
          {"base", "10000", {}, "pair m turns by base^(-2m/D) per position", 1, true},
          {"scaling", "none", rotation_scaling_names(), "of the angles, for sequences beyond orig"},
          {"factor", "1", {}, "of a scaling: how many times longer than orig", 1, true},
          {"orig", "longest", {}, "length that the unscaled angles were trained with"},
          {"rotary_value", "false", {"true", "false"}, "values are turned as well"}};
}

std::vector<std::string> stretching_scalings() {
  std::vector<std::string> names = rotation_scaling_names();
  std::erase(names, "none");
  return names;
}

// A factor of 1 stretches nothing, except for the scaling that goes by the sequence's length.
void check_factor(const RotationSettings& settings) {
  if (settings.factor > 1.0 || settings.scaling == "none" || settings.scaling == "ntk-dynamic") {
    return;
  }
  throw std::invalid_argument("position encoding rope: option scaling=" + settings.scaling +
                              " has no effect with factor=1; factor says how many times longer "
                              "than orig sequences get");
}

class Rope : public PlacedEncoding {
 public:
  Rope(const PositionContext& context, const OptionReader& reader)
      : context_(context),
        layout_(reader.text("layout") == "half" ? RotationLayout::kHalf
                                                : RotationLayout::kInterleaved),
        rotate_values_(reader.flag("rotary_value")) {
    if (context.head_width % 2 != 0) {
      throw std::invalid_argument("position encoding rope: a hidden size of " +
                                  std::to_string(context.hidden_size()) + " with " +
                                  std::to_string(context.heads) + " heads gives heads of width " +
                                  std::to_string(context.head_width) + "; it must be even");
    }
    reader.needs("factor", "scaling", stretching_scalings());
    settings_.width = context.head_width;
    settings_.base = reader.number("base");
    settings_.scaling = reader.text("scaling");
    settings_.factor = reader.number("factor");
    settings_.trained_length = reader.integer("orig", context.max_positions);
    check_factor(settings_);
    // What is wrong with the settings is said here rather than at the first long sequence.
    rotation_frequencies(settings_, 1);
    rotation_frequencies(settings_for(context.max_positions + settings_.trained_length), 1);
  }

  PositionOptions pinned_options() const override {
    return {{"orig", std::to_string(settings_.trained_length)}};
  }

  AttentionTerms terms(std::int64_t tokens) override {
    const Tensor& tables =
        tables_.get(tokens, device(), torch::kFloat64, [&] { return cosines_and_sines(tokens); });
    AttentionTerms terms = plain_attention_terms(context_.head_width);
    terms.rotation_cos = tables[0];
    terms.rotation_sin = tables[1];
    terms.rotation_layout = layout_;
    terms.rotate_values = rotate_values_;
    return terms;
  }

 private:
  RotationSettings settings_for(std::int64_t tokens) const {
    RotationSettings settings = settings_;
    const RotationScaling& extension = context_.extension.rotation;
    if (!extension.method.empty() && tokens > context_.max_positions) {
      settings.scaling = extension.method;
      const double longer =
          static_cast<double>(tokens) / static_cast<double>(settings.trained_length);
      settings.factor = extension.factor == 0.0 ? std::max(longer, 1.0) : extension.factor;
    }
    return settings;
  }

  // [2,T,D/2]
  Tensor cosines_and_sines(std::int64_t tokens) const {
    const RotationFrequencies frequencies = rotation_frequencies(settings_for(tokens), tokens);
    const Tensor positions =
        torch::arange(tokens, torch::TensorOptions().dtype(torch::kFloat64)).unsqueeze(1);
    const Tensor angles = positions * torch::tensor(frequencies.radians, torch::kFloat64);
    return at::stack({angles.cos(), angles.sin()}).mul_(frequencies.magnitude);
  }

  PositionContext context_;
  RotationLayout layout_;
  bool rotate_values_;
  RotationSettings settings_;
  LengthCache tables_;
};

}  // namespace

PositionEncodingKind rope_kind() {
  return {"rope",
          "queries and keys turned by an angle proportional to their position",
          rope_options(),
          {},
          [](const PositionContext& context,
             const PositionOptions& given) -> std::shared_ptr<PositionEncoding> {
            return std::make_shared<Rope>(context, OptionReader("rope", rope_options(), given));
          }};
}

}  // namespace tupelo
