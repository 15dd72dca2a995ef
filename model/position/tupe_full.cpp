// The four-way form: contents and positions each attend to both, with a relative bias beside or
// instead of the product of positions.
#include <cmath>
#include <optional>
#include <stdexcept>

#include "model/layers.h"
#include "model/position/cls_reset.h"
#include "model/position/kinds.h"
#include "model/position/option_reader.h"
#include "model/position/relative_line.h"
#include "model/position/sinusoidal.h"
#include "model/position/toeplitz.h"

namespace tupelo {
namespace {

using torch::Tensor;

std::vector<PositionOptionKind> options() {
  return {
      {"pp",
       "relative",
       {"relative", "dot", "both", "none"},
       "what stands for position-to-position: a bias of the distance, a dot product, both, "
       "nothing"},
      {"scale",
       "joint",
       {"joint", "each"},
       "of the dot products: 1/sqrt(n D) for their number n, or 1/sqrt(D) as in the article's "
       "code"},
      {"temperature",
       "none",
       {"none", "shared", "per-head"},
       "trainable factors, from 1, of content-to-position, position-to-content and "
       "position-to-position"},
      {"temperature_cc",
       "false",
       {"true", "false"},
       "a temperature for content-to-content as well"},
      {"cls_untie",
       "false",
       {"true", "false"},
       "[CLS] has no position: zero position query and key, one trained bias per head towards it"},
      {"pos_dim", "256", {}, "width P of the position table", 2},
      {"pos_init", "sinusoidal", {"sinusoidal", "normal"}, "first values of the position table"},
      {"pos_ln", "false", {"true", "false"}, "a layer norm on the position table"},
      {"rel",
       "table",
       {"table", "t5"},
       "the bias of the distance: a row per distance, or T5's logarithmic buckets"},
      {"rel_init", "normal", {"normal", "zero"}, "first values of that bias"},
      {"rel_range", "longest", {}, "rel=table: distances from here on share the end rows"},
      {"rel_bins", "32", {}, "rel=t5: buckets, an even number", 4},
      {"max_distance", "128", {}, "rel=t5: distances from here on share a bucket", 2},
      {"fold",
       "auto",
       {"auto", "add", "concat"},
       "how it reaches attention, with equal results: positions added to queries and keys and a "
       "bias that"
       " takes the surplus back, or more features; auto: concat when temperature_cc could reach "
       "0"}};
}

struct Flags {
  explicit Flags(const OptionReader& reader)
      : bias(reader.text("pp") == "relative" || reader.text("pp") == "both"),
        dot(reader.text("pp") == "dot" || reader.text("pp") == "both"),
        joint_scale(reader.text("scale") == "joint"),
        temperatures(reader.text("temperature") != "none"),
        shared_temperatures(reader.text("temperature") == "shared"),
        content_temperature(reader.flag("temperature_cc")),
        untie_cls(reader.flag("cls_untie")),
        sinusoidal(reader.text("pos_init") == "sinusoidal"),
        zero_bias(reader.text("rel_init") == "zero"),
        concatenate(reader.text("fold") == "concat" ||
                    (reader.text("fold") == "auto" && content_temperature)) {}

  bool bias, dot, joint_scale, temperatures, shared_temperatures, content_temperature, untie_cls,
      sinusoidal, zero_bias, concatenate;
};

// [N,1,1] each; undefined means 1.
struct Temperatures {
  Tensor content, content_position, position_content, position;
};

Tensor times(const Tensor& tensor, const Tensor& factor) {
  return factor.defined() ? tensor * factor : tensor;
}

class TupeFull : public PositionEncoding {
 public:
  TupeFull(const PositionContext& context, const OptionReader& reader)
      : context_(context), flags_(reader) {
    check_options(reader);
    const std::int64_t width = reader.integer("pos_dim");
    const std::int64_t hidden = context.heads * context.head_width;
    table_ = register_module("pos", std::make_shared<Embedding>(context.max_positions, width));
    if (reader.flag("pos_ln")) {
      norm_ =
          register_module("pos_ln", std::make_shared<LayerNorm>(width, context.layer_norm_epsilon));
    }
    query_projection_ = register_module("q_pos", std::make_shared<Linear>(width, hidden));
    key_projection_ = register_module("k_pos", std::make_shared<Linear>(width, hidden));
    if (flags_.bias) {
      register_relative_bias(reader);
    }
    if (flags_.temperatures) {
      const std::int64_t rows = 2 + flags_.content_temperature + (flags_.bias || flags_.dot);
      temperature_ = register_parameter(
          "temperature", torch::ones({rows, flags_.shared_temperatures ? 1 : context.heads}));
    }
    if (flags_.untie_cls) {
      to_cls_ = register_parameter("cls_bias", torch::zeros({context.heads}));
    }
  }

  void initialize(double standard_deviation, const at::Generator& generator) override {
    torch::NoGradGuard no_grad;
    table_->initialize(standard_deviation, generator);
    if (flags_.sinusoidal) {
      table_->weight.copy_(sinusoidal_table(torch::arange(table_->weight.size(0), torch::kInt64),
                                            table_->weight.size(1), SinusoidLayout::kInterleaved));
    }
    if (norm_) {
      norm_->initialize();
    }
    query_projection_->initialize(standard_deviation, generator);
    key_projection_->initialize(standard_deviation, generator);
    if (relative_bias_) {
      relative_bias_->initialize(flags_.zero_bias ? 0.0 : standard_deviation, generator);
    }
    if (temperature_.defined()) {
      temperature_.fill_(1.0);
    }
    if (to_cls_.defined()) {
      to_cls_.zero_();
    }
  }

  std::vector<std::string> undecayed_parameters() const override {
    std::vector<std::string> names;
    for (const auto& parameter : named_parameters()) {
      const std::string& name = parameter.key();
      if (parameter.value().dim() == 1 || name == "temperature" || name == "rel_pos_bias.weight") {
        names.push_back(name);
      }
    }
    return names;
  }

  double learning_rate_multiplier() const override { return 0.2; }

  AttentionTerms terms(std::int64_t tokens) override {
    check_covered("tupe-full", tokens, context_.max_positions);
    Tensor rows = table_->weight.narrow(0, 0, tokens);
    if (norm_) {
      rows = norm_->forward(rows);
    }
    const Tensor query = split_heads(query_projection_->forward(rows));
    const Tensor key = split_heads(key_projection_->forward(rows));
    const Temperatures temperatures = split_temperatures();
    AttentionTerms terms;
    terms.scale = scale();
    terms.query_gain = temperatures.content;
    terms.query_offset = times(query, temperatures.position_content);
    terms.bias = distance_bias(tokens, temperatures);
    if (flags_.concatenate) {
      concatenate(query, key, temperatures, terms);
    } else {
      add(query, key, temperatures, terms);
    }
    return terms;
  }

 private:
  static void check_options(const OptionReader& reader) {
    const auto reject = [](const std::string& what) {
      throw std::invalid_argument("position encoding tupe-full: " + what);
    };
    if (reader.integer("pos_dim") % 2 != 0 && reader.text("pos_init") == "sinusoidal") {
      reject("pos_dim=" + reader.text("pos_dim") + " must be even with pos_init=sinusoidal");
    }
    if (reader.flag("temperature_cc") && reader.text("temperature") == "none") {
      reject("temperature_cc=true needs temperature=shared or temperature=per-head");
    }
  }

  void register_relative_bias(const OptionReader& reader) {
    std::int64_t rows = 2 * reader.integer("rel_range", context_.max_positions) - 1;
    if (reader.text("rel") == "t5") {
      rows = reader.integer("rel_bins");
      t5_line_.emplace(rows, reader.integer("max_distance"));
    }
    relative_bias_ =
        register_module("rel_pos_bias", std::make_shared<Embedding>(rows, context_.heads));
  }

  double scale() const {
    const double products = flags_.joint_scale ? (flags_.dot ? 4.0 : 3.0) : 1.0;
    return 1.0 / std::sqrt(products * static_cast<double>(context_.head_width));
  }

  // [T,H] -> [N,T,D]
  Tensor split_heads(const Tensor& rows) const {
    const Tensor heads = rows.view({-1, context_.heads, context_.head_width}).transpose(0, 1);
    return flags_.untie_cls ? without_first_row(heads) : heads;
  }

  Temperatures split_temperatures() const {
    Temperatures temperatures;
    if (!temperature_.defined()) {
      return temperatures;
    }
    std::int64_t row = 0;
    const auto next = [&] {
      return at_least_float32(temperature_[row++]).expand({context_.heads}).view({-1, 1, 1});
    };
    if (flags_.content_temperature) {
      temperatures.content = next();
    }
    temperatures.content_position = next();
    temperatures.position_content = next();
    if (flags_.bias || flags_.dot) {
      temperatures.position = next();
    }
    return temperatures;
  }

  // [N,T,T] or undefined: the bias of the distance, with [CLS] untied from it.
  Tensor distance_bias(std::int64_t tokens, const Temperatures& temperatures) {
    Tensor bias;
    if (flags_.bias) {
      const Tensor table = at_least_float32(relative_bias_->weight);
      Tensor line = t5_line_ ? (*t5_line_)(table, tokens) : clipped_line(table, tokens);
      // Beside a dot product the temperature belongs to that.
      if (!flags_.dot && temperatures.position.defined()) {
        line = line * temperatures.position.squeeze(-1);
      }
      bias = toeplitz(line);
    }
    if (!flags_.untie_cls) {
      return bias;
    }
    const Tensor to_cls = at_least_float32(to_cls_);
    if (!bias.defined()) {
      bias = torch::zeros({context_.heads, tokens, tokens}, to_cls.options().requires_grad(false));
    }
    return reset_cls(bias, {}, to_cls);
  }

  // (t_cc q + t_pc q_p)(k + (t_cp / t_cc) k_p)^T holds all four products; what it has of q_p k_p^T
  // beyond the wanted t_pp goes back through the bias, in float32 because it may cancel.
  void add(const Tensor& query, const Tensor& key, const Temperatures& temperatures,
           AttentionTerms& terms) const {
    Tensor key_factor = temperatures.content_position;
    if (temperatures.content.defined()) {
      key_factor = key_factor / temperatures.content;
    }
    terms.key_offset = times(key, key_factor);
    if (flags_.dot && !key_factor.defined()) {
      return;  // all temperatures are 1: the surplus is nothing
    }
    Tensor surplus = key_factor.defined() ? key_factor * temperatures.position_content
                                          : torch::ones({1, 1, 1}, query.options());
    if (flags_.dot) {
      surplus = surplus - temperatures.position;
    }
    const Tensor left = at_least_float32(query) * (surplus * -scale());
    const Tensor right = at_least_float32(key).transpose(1, 2);
    terms.bias = terms.bias.defined() ? at::baddbmm(terms.bias, left, right) : at::bmm(left, right);
  }

  // [t_cc q + t_pc q_p ; t_cp q + t_pp q_p][k ; k_p]^T, exact for any temperatures.
  void concatenate(const Tensor& query, const Tensor& key, const Temperatures& temperatures,
                   AttentionTerms& terms) const {
    terms.query_extra_gain = temperatures.content_position.defined()
                                 ? temperatures.content_position
                                 : torch::ones({context_.heads, 1, 1}, query.options());
    if (flags_.dot) {
      terms.query_extra = times(query, temperatures.position);
    }
    terms.key_extra = key;
  }

  PositionContext context_;
  Flags flags_;
  std::optional<T5RelativeLine> t5_line_;
  std::shared_ptr<Embedding> table_;
  std::shared_ptr<LayerNorm> norm_;
  std::shared_ptr<Linear> query_projection_;
  std::shared_ptr<Linear> key_projection_;
  std::shared_ptr<Embedding> relative_bias_;
  Tensor temperature_;  // [2..4, N or 1]: (t_cc,) t_cp, t_pc (, t_pp)
  Tensor to_cls_;       // [N]
};

}  // namespace

PositionEncodingKind tupe_full_kind() {
  return {"tupe-full",
          "four-way attention of contents and positions with a relative bias (the article's TUPE)",
          options(),
          {},
          [](const PositionContext& context,
             const PositionOptions& given) -> std::shared_ptr<PositionEncoding> {
            return std::make_shared<TupeFull>(context, OptionReader("tupe-full", options(), given));
          },
          {"article"}};
}

}  // namespace tupelo
