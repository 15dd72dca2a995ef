// NEZHA: fixed sinusoids of the clipped distance, added to keys and values (Wei et al., "NEZHA:
// Neural Contextualized Representation for Chinese Language Understanding", 2019).
#include <stdexcept>

#include "model/position/kinds.h"
#include "model/position/length_cache.h"
#include "model/position/option_reader.h"
#include "model/position/placed_encoding.h"
#include "model/position/sinusoidal.h"

namespace tupelo {
namespace {

using torch::Tensor;

std::vector<PositionOptionKind> nezha_options() {
  return {{"clip", "64", {}, "farther distances use the vector of this one"},
          {"values", "true", {"true", "false"}, "vectors for values as well as for keys"},
          {"fold",
           "auto",
           {"auto", "relative"},
           "how it reaches attention, with equal results: auto: as more features of queries and "
           "keys while a sequence is too short for clipping"}};
}

class Nezha : public PlacedEncoding {
 public:
  Nezha(const PositionContext& context, const OptionReader& reader)
      : context_(context),
        clip_(reader.integer("clip")),
        values_(reader.flag("values")),
        fold_(reader.text("fold") == "auto") {
    if (context.head_width % 2 != 0) {
      throw std::invalid_argument("position encoding nezha: a hidden size of " +
                                  std::to_string(context.hidden_size()) + " with " +
                                  std::to_string(context.heads) + " heads gives heads of width " +
                                  std::to_string(context.head_width) + "; it must be even");
    }
  }

  AttentionTerms terms(std::int64_t tokens) override {
    AttentionTerms terms = plain_attention_terms(context_.head_width);
    if (fold_ && tokens <= clip_ + 1) {
      add_phases(tokens, terms);
    } else {
      add_vectors(terms);
    }
    return terms;
  }

 private:
  Tensor sinusoids(std::int64_t first, std::int64_t rows) const {
    return sinusoidal_table(torch::arange(first, first + rows, torch::kInt64), context_.head_width,
                            SinusoidLayout::kInterleaved);
  }

  void add_vectors(AttentionTerms& terms) {
    const std::int64_t rows = 2 * clip_ + 1;
    terms.relative_key =
        table_.get(rows, device(), wide_type(), [&] { return sinusoids(0, rows).unsqueeze(0); });
    if (values_) {
      terms.relative_value = terms.relative_key;
    }
  }

  // The sinusoid of j - i + clip is that of j + clip, turned back by i.
  void add_phases(std::int64_t tokens, AttentionTerms& terms) {
    const Tensor turns = turns_.get(tokens, device(), torch::kFloat64, [&] {
      return sinusoids(0, tokens).view({tokens, -1, 2}).movedim(-1, 0).contiguous();
    });
    terms.phase_sin = turns[0];
    terms.phase_cos = turns[1];
    terms.phase_key =
        keys_.get(tokens, device(), wide_type(), [&] { return sinusoids(clip_, tokens); });
    if (values_) {
      terms.phase_value = terms.phase_key;
    }
  }

  PositionContext context_;
  std::int64_t clip_;
  bool values_, fold_;
  LengthCache table_;  // [1,2c+1,D]
  LengthCache turns_;  // [2,T,D/2]
  LengthCache keys_;   // [T,D]
};

}  // namespace

PositionEncodingKind nezha_kind() {
  return {"nezha",
          "fixed sinusoids of the clipped distance, added to keys and values",
          nezha_options(),
          {},
          [](const PositionContext& context,
             const PositionOptions& given) -> std::shared_ptr<PositionEncoding> {
            return std::make_shared<Nezha>(context, OptionReader("nezha", nezha_options(), given));
          }};
}

}  // namespace tupelo
