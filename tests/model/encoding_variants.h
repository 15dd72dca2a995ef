// Encodings by themselves, in their default form and with each value of each option, and heads to
// attend with.
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "model/position/position_encoding.h"
#include "tests/model/formulas.h"

namespace tupelo {

struct EncodingVariant {
  std::string name;
  PositionOptions options;

  std::string plan_entry() const {
    std::string text;
    for (const auto& [option, value] : options) {
      text += (text.empty() ? "(" : ",") + option + "=" + value;
    }
    return name + (text.empty() ? "" : text + ")");
  }
};

inline void PrintTo(const EncodingVariant& variant, std::ostream* stream) {
  *stream << variant.plan_entry();
}

// Options that only mean something beside others.
inline PositionOptions companions(const std::string& option) {
  if (option == "temperature_cc") return {{"temperature", "per-head"}};
  if (option == "max_distance" || option == "rel_bins") return {{"rel", "t5"}};
  if (option == "factor") return {{"scaling", "pi"}};
  if (option == "scaling") return {{"factor", "2"}};
  return {};
}

// A value of a numeric option that differs from the default.
inline std::string some_number(const PositionOptionKind& option) {
  if (option.name == "kernel") return "5";
  if (option.name == "delta") return "0.02";
  return std::to_string(option.minimum + (option.real ? 2 : 8));
}

inline std::vector<EncodingVariant> encoding_variants() {
  std::vector<EncodingVariant> variants;
  for (const PositionEncodingKind& kind : position_encoding_kinds()) {
    variants.push_back({kind.name, {}});
    for (const PositionOptionKind& option : kind.options) {
      if (option.name == "refresh_every") continue;  // gradients on some calls only: tested apart
      const auto values =
          option.values.empty() ? std::vector<std::string>{some_number(option)} : option.values;
      for (const std::string& value : values) {
        if (value == option.default_value) continue;
        EncodingVariant variant{kind.name, {{option.name, value}}};
        for (const auto& companion : companions(option.name)) {
          const bool known = std::any_of(kind.options.begin(), kind.options.end(),
                                         [&](const auto& o) { return o.name == companion.first; });
          if (known) variant.options.push_back(companion);
        }
        variants.push_back(variant);
      }
    }
  }
  // Combinations with a cancellation or a form of their own.
  variants.push_back({"tupe-a", {{"theta", "none"}, {"fold", "concat"}}});
  variants.push_back({"tupe-a", {{"theta", "paper"}, {"fold", "concat"}}});
  variants.push_back({"tupe-a", {{"gate", "per-head"}, {"fold", "concat"}}});
  variants.push_back({"tupe-r", {{"gate", "per-head"}, {"content", "rope"}}});
  for (const std::string pp : {"relative", "dot", "both", "none"}) {
    for (const std::string fold : {"add", "concat"}) {
      variants.push_back({"tupe-full",
                          {{"pp", pp},
                           {"temperature", "per-head"},
                           {"temperature_cc", "true"},
                           {"cls_untie", "true"},
                           {"fold", fold}}});
    }
  }
  variants.push_back({"tupe-full", {{"pp", "both"}, {"temperature", "shared"}}});
  variants.push_back({"tupe-full", {{"pp", "dot"}, {"fold", "concat"}}});
  variants.push_back({"tupe-full", {{"rel_range", "3"}}});
  for (const std::string name : {"shaw", "nezha"}) variants.push_back({name, {{"clip", "3"}}});
  variants.push_back({"xlnet", {{"clamp_len", "3"}}});
  return variants;
}

inline constexpr std::int64_t kSmallHeads = 3, kSmallWidth = 4, kSmallLongest = 9;

inline std::shared_ptr<PositionEncoding> small_encoding(const EncodingVariant& variant,
                                                        torch::ScalarType type = torch::kFloat64) {
  PositionContext context;
  context.heads = kSmallHeads;
  context.head_width = kSmallWidth;
  context.max_positions = kSmallLongest;
  context.layers = 1;
  const auto encoding = make_position_encoding(variant.name, context, variant.options);
  encoding->initialize(0.3, at::make_generator<at::CPUGeneratorImpl>(11));
  encoding->to(type);
  perturb(*encoding, 0.2);
  return encoding;
}

struct SmallHeads {
  explicit SmallHeads(std::int64_t tokens, std::int64_t batch = 2)
      : query(torch::randn({batch, kSmallHeads, tokens, kSmallWidth}, torch::kFloat64)),
        key(torch::randn_like(query)),
        value(torch::randn_like(query)) {}
  torch::Tensor query, key, value;
};

}  // namespace tupelo
