// Trained vectors of the clipped distance, added to keys and values (Shaw, Uszkoreit, Vaswani,
// "Self-Attention with Relative Position Representations", NAACL 2018).
#include "model/layers.h"
#include "model/position/kinds.h"
#include "model/position/option_reader.h"

namespace tupelo {
namespace {

using torch::Tensor;

std::vector<PositionOptionKind> shaw_options() {
  return {{"clip", "16", {}, "farther distances use the vectors of this one"},
          {"values", "true", {"true", "false"}, "vectors for values as well as for keys"}};
}

class Shaw : public PositionEncoding {
 public:
  Shaw(const PositionContext& context, const OptionReader& reader) : context_(context) {
    const std::int64_t rows = 2 * reader.integer("clip") + 1;
    key_table_ = register_parameter("key_table", torch::zeros({rows, context.head_width}));
    if (reader.flag("values")) {
      value_table_ = register_parameter("value_table", torch::zeros({rows, context.head_width}));
    }
  }

  void initialize(double standard_deviation, const at::Generator& generator) override {
    fill_normal(key_table_, standard_deviation, generator);
    if (value_table_.defined()) {
      fill_normal(value_table_, standard_deviation, generator);
    }
  }

  AttentionTerms terms(std::int64_t) override {
    AttentionTerms terms = plain_attention_terms(context_.head_width);
    terms.relative_key = key_table_.unsqueeze(0);
    if (value_table_.defined()) {
      terms.relative_value = value_table_.unsqueeze(0);
    }
    return terms;
  }

 private:
  PositionContext context_;
  Tensor key_table_, value_table_;  // [2c+1,D], row r + c
};

}  // namespace

PositionEncodingKind shaw_kind() {
  return {"shaw",
          "trained vectors of the clipped distance, added to keys and values",
          shaw_options(),
          {},
          [](const PositionContext& context,
             const PositionOptions& given) -> std::shared_ptr<PositionEncoding> {
            return std::make_shared<Shaw>(context, OptionReader("shaw", shaw_options(), given));
          }};
}

}  // namespace tupelo
