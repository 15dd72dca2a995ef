// The four-way form: contents and positions each attend to both, with a relative bias beside or
// instead of the product of positions.
#include <cmath>
#include <optional>

#include "model/layers.h"
#include "model/position/cls_reset.h"
#include "model/position/content_rotation.h"
#include "model/position/kinds.h"
#include "model/position/option_reader.h"
#include "model/position/relative_line.h"
#include "model/position/sinusoidal.h"
#include "model/position/toeplitz.h"
#include "model/position/tupe_full_flags.h"

namespace tupelo {
namespace {

using torch::Tensor;

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
      : context_(context), flags_(reader), content_(*this, context, reader) {
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

  // A row of [CLS] that plays no part is left alone by an extension.
  std::int64_t longest() const override {
    const std::int64_t others =
        extended_length(table_->weight.size(0) - rows_kept(), context_.extension);
    return others == tupelo::kAnyLength ? others : others + rows_kept();
  }

  std::vector<ResizableTable> resizable_tables() const override {
    std::vector<ResizableTable> tables = {
        {"pos.weight", ResizableTable::Rows::kPositions, rows_kept()}};
    if (relative_bias_) {
      tables.push_back({"rel_pos_bias.weight", ResizableTable::Rows::kDistances, 0});
    }
    return tables;
  }

  AttentionTerms terms(std::int64_t tokens) override {
    const Projections positions = project(tokens);
    const Temperatures temperatures = split_temperatures();
    AttentionTerms terms;
    terms.scale = scale();
    terms.query_gain = temperatures.content;
    terms.query_offset = times(positions.query, temperatures.position_content);
    terms.bias = distance_bias(tokens, temperatures);
    if (flags_.concatenate) {
      concatenate(positions, temperatures, terms);
    } else {
      add(positions, temperatures, terms);
    }
    content_.add_to(terms, tokens);
    return terms;
  }

  PositionPicture picture(std::int64_t tokens) override {
    const Temperatures temperatures = split_temperatures();
    PositionPicture picture;
    if (flags_.dot) {
      const Projections positions = project(tokens);
      const Tensor query = times(at_least_float32(positions.query), temperatures.position);
      picture.correlation =
          at::bmm(query * scale(), at_least_float32(positions.key).transpose(1, 2));
      if (flags_.untie_cls) {
        picture.correlation = reset_cls(picture.correlation, {}, at_least_float32(to_cls_));
      }
    }
    if (flags_.bias) {
      picture.distance_bias = distance_line(tokens, temperatures);
    }
    return picture;
  }

  double terms_flops(std::int64_t tokens) const override {
    const auto length = static_cast<double>(tokens);
    const auto hidden = static_cast<double>(context_.hidden_size());
    const auto width = static_cast<double>(table_->weight.size(1));
    const bool surplus = !flags_.concatenate && (!flags_.dot || flags_.temperatures);
    return 2.0 * 2.0 * length * width * hidden + (surplus ? 2.0 * length * length * hidden : 0.0);
  }

 private:
  struct Projections {
    Tensor query, key;  // [N,T,D]
  };

  std::int64_t rows_kept() const { return flags_.untie_cls ? 1 : 0; }

  Projections project(std::int64_t tokens) const {
    check_covered("tupe-full", tokens, longest());
    Tensor rows = extended_table(table_->weight, rows_kept(), tokens, context_.extension);
    if (norm_) {
      rows = norm_->forward(rows);
    }
    return {split_heads(query_projection_->forward(rows)),
            split_heads(key_projection_->forward(rows))};
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

  // [N,2T-1]
  Tensor distance_line(std::int64_t tokens, const Temperatures& temperatures) {
    const Tensor table = at_least_float32(relative_bias_->weight);
    const Tensor line = t5_line_ ? (*t5_line_)(table, tokens) : clipped_line(table, tokens);
    // Beside a dot product the temperature belongs to that.
    return flags_.dot || !temperatures.position.defined()
               ? line
               : line * temperatures.position.squeeze(-1);
  }

  // [N,T,T] or undefined: the bias of the distance, with [CLS] untied from it.
  Tensor distance_bias(std::int64_t tokens, const Temperatures& temperatures) {
    Tensor bias;
    if (flags_.bias) {
      bias = toeplitz(distance_line(tokens, temperatures));
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
  void add(const Projections& positions, const Temperatures& temperatures,
           AttentionTerms& terms) const {
    const auto& [query, key] = positions;
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
  void concatenate(const Projections& positions, const Temperatures& temperatures,
                   AttentionTerms& terms) const {
    const auto& [query, key] = positions;
    terms.query_extra_gain = temperatures.content_position.defined()
                                 ? temperatures.content_position
                                 : torch::ones({context_.heads, 1, 1}, query.options());
    if (flags_.dot) {
      // A node of its own, also where the factor is 1: gradients of layers add up per term, in the
      // same order whether a layer is recomputed or not.
      terms.query_extra = times(query.view_as(query), temperatures.position);
    }
    terms.key_extra = key;
  }

  PositionContext context_;
  TupeFullFlags flags_;
  ContentRotation content_;
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
          TupeFullFlags::options(),
          {},
          [](const PositionContext& context,
             const PositionOptions& given) -> std::shared_ptr<PositionEncoding> {
            return std::make_shared<TupeFull>(
                context, OptionReader("tupe-full", TupeFullFlags::options(), given));
          },
          {"article"}};
}

}  // namespace tupelo
