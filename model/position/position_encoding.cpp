#include "model/position/position_encoding.h"

#include <algorithm>
#include <stdexcept>

#include "model/position/kinds.h"
#include "model/position/option_reader.h"
#include "model/position/spelling.h"

namespace tupelo {
namespace {

std::vector<PositionEncodingKind> all_kinds() {
  std::vector<PositionEncodingKind> kinds = {
      alibi_kind(),   convolution_kind(),   deberta_kind(),       deberta_v2_kind(),
      floater_kind(), nezha_kind(),         rope_kind(),          shaw_kind(),
      t5_kind(),      tupe_absolute_kind(), tupe_relative_kind(), tupe_full_kind(),
      xlnet_kind(),
  };
  for (PositionEncodingKind& kind : kinds) {
    for (const PositionOptionKind& option : kind.options) {
      kind.option_help.push_back(option_help_text(option));
    }
  }
  return kinds;
}

bool is_called(const PositionEncodingKind& kind, const std::string& name) {
  return kind.name == name ||
         std::find(kind.aliases.begin(), kind.aliases.end(), name) != kind.aliases.end();
}

// Encodings of the input are looked for among those of attention.
std::string hint_for(const std::string& name, const std::vector<std::string>& names) {
  for (const InputEncodingKind& kind : input_encoding_kinds()) {
    if (kind.name == name) {
      return ", which belongs at the input (input-position " + name + ")";
    }
  }
  return spelling_hint(name, names);
}

}  // namespace

std::vector<AttentionTerms> PositionEncoding::layer_terms(std::int64_t tokens,
                                                          std::int64_t layers) {
  return std::vector<AttentionTerms>(static_cast<std::size_t>(layers), terms(tokens));
}

void PositionEncoding::initialize(double, const at::Generator&) {}

PositionPicture PositionEncoding::picture(std::int64_t tokens) {
  PositionPicture picture;
  picture.correlation = terms(tokens).bias;
  return picture;
}

double PositionEncoding::terms_flops(std::int64_t) const { return 0.0; }

const std::vector<PositionEncodingKind>& position_encoding_kinds() {
  static const std::vector<PositionEncodingKind> kinds = all_kinds();
  return kinds;
}

const PositionEncodingKind& position_encoding_kind(const std::string& name) {
  std::vector<std::string> names = {"none"};
  for (const PositionEncodingKind& kind : position_encoding_kinds()) {
    if (is_called(kind, name)) {
      return kind;
    }
    names.push_back(kind.name);
    names.insert(names.end(), kind.aliases.begin(), kind.aliases.end());
  }
  throw std::invalid_argument("unknown position encoding '" + name + "'" + hint_for(name, names) +
                              "; valid: " + comma_separated(names));
}

std::shared_ptr<PositionEncoding> make_position_encoding(const std::string& name,
                                                         const PositionContext& context,
                                                         const PositionOptions& options) {
  const PositionEncodingKind& kind = position_encoding_kind(name);
  const std::string owner = "position encoding " + kind.name;
  try {
    return kind.make(context, options);
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    throw std::invalid_argument(what.starts_with(owner) ? what : owner + ": " + what);
  }
}

void check_covered(const std::string& encoding, std::int64_t tokens, std::int64_t covered) {
  if (tokens > covered) {
    throw std::invalid_argument("position encoding " + encoding + ": a sequence of " +
                                std::to_string(tokens) + " tokens is longer than the " +
                                std::to_string(covered) + " positions that the model covers");
  }
}

torch::Tensor at_least_float32(const torch::Tensor& tensor) {
  const bool half = tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
  return half ? tensor.to(at::kFloat) : tensor;
}

}  // namespace tupelo
