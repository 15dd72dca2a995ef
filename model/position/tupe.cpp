#include "model/position/tupe.h"

#include <cmath>
#include <utility>

#include "model/position/cls_reset.h"
#include "model/position/kinds.h"

namespace tupelo {
namespace {

TupeTheta theta_of(const OptionReader& options) {
  const std::string& text = options.text("theta");
  return text == "official" ? TupeTheta::kOfficial
                            : (text == "paper" ? TupeTheta::kPaper : TupeTheta::kNone);
}

}  // namespace

PositionOptionKind Tupe::theta_option() {
  return {"theta",
          "official",
          {"official", "paper", "none"},
          "what replaces [CLS]'s row and column: table rows 0 and 1 (released code), two vectors "
          "of their"
          " own (paper), nothing"};
}

std::vector<PositionOptionKind> Tupe::last_options() {
  return {{"gate",
           "none",
           {"none", "per-head"},
           "a trained factor, from 1 and between 0 and 2, of all that positions say to a head"},
          ContentRotation::option()};
}

Tupe::Tupe(std::string name, const PositionContext& context, const OptionReader& options)
    : name_(std::move(name)),
      context_(context),
      theta_(theta_of(options)),
      content_(*this, context, options) {
  const std::int64_t hidden = context.hidden_size();
  const std::int64_t rows = context.max_positions + rows_in_front();
  table_ = register_module("pos", std::make_shared<Embedding>(rows, hidden));
  norm_ =
      register_module("pos_ln", std::make_shared<LayerNorm>(hidden, context.layer_norm_epsilon));
  query_projection_ = register_module("pos_q_linear", std::make_shared<Linear>(hidden, hidden));
  key_projection_ = register_module("pos_k_linear", std::make_shared<Linear>(hidden, hidden));
  if (theta_ == TupeTheta::kPaper) {
    theta_vectors_ = register_parameter("theta", torch::zeros({2, hidden}));
  }
  if (options.text("gate") == "per-head") {
    gate_ = register_parameter("gate", torch::zeros({context.heads}));
  }
}

void Tupe::initialize(double standard_deviation, const at::Generator& generator) {
  table_->initialize(standard_deviation, generator);
  norm_->initialize();
  query_projection_->initialize(standard_deviation, generator);
  key_projection_->initialize(standard_deviation, generator);
  if (theta_vectors_.defined()) {
    fill_normal(theta_vectors_, standard_deviation, generator);
  }
  if (gate_.defined()) {
    torch::NoGradGuard no_grad;
    gate_.zero_();
  }
}

std::vector<std::string> Tupe::undecayed_parameters() const {
  std::vector<std::string> names = {"pos_ln.weight", "pos_ln.bias", "pos_q_linear.bias",
                                    "pos_k_linear.bias"};
  if (gate_.defined()) {
    names.emplace_back("gate");
  }
  return names;
}

// [CLS]'s own row, and in front of it the one that serves theta 1 only. Where [CLS] is untied its
// row is not a point on the line that the other rows form.
std::int64_t Tupe::rows_kept() const {
  return theta_ == TupeTheta::kNone ? 0 : rows_in_front() + 1;
}

std::int64_t Tupe::longest() const {
  const std::int64_t kept = rows_kept();
  const std::int64_t others = extended_length(table_->weight.size(0) - kept, context_.extension);
  return others == kAnyLength ? others : others + kept - rows_in_front();
}

std::vector<ResizableTable> Tupe::resizable_tables() const {
  return {{"pos.weight", ResizableTable::Rows::kPositions, rows_kept()}};
}

double Tupe::terms_flops(std::int64_t tokens) const {
  const auto rows = static_cast<double>(tokens + rows_in_front() +
                                        (theta_vectors_.defined() ? theta_vectors_.size(0) : 0));
  const auto length = static_cast<double>(tokens);
  const auto hidden = static_cast<double>(context_.hidden_size());
  return 2.0 * 2.0 * rows * hidden * hidden + 2.0 * length * length * hidden;
}

double Tupe::scale() const {
  return 1.0 / std::sqrt(2.0 * static_cast<double>(context_.head_width));
}

torch::Tensor Tupe::split_heads(const torch::Tensor& rows) const {
  return rows.view({rows.size(0), context_.heads, context_.head_width}).transpose(0, 1);
}

torch::Tensor Tupe::gate() const {
  return gate_.defined() ? at_least_float32(gate_).sigmoid() * 2.0 : gate_;
}

AttentionTerms Tupe::terms_without_positions(std::int64_t tokens) const {
  AttentionTerms terms;
  terms.scale = scale();
  content_.add_to(terms, tokens);
  return terms;
}

// In front of the tokens' rows stand those that only serve the thetas, so that theta 1 is always
// the product of row 0 with itself and theta 2 that of row 1.
torch::Tensor Tupe::rows_of(std::int64_t tokens) const {
  const torch::Tensor rows =
      extended_table(table_->weight, rows_kept(), tokens + rows_in_front(), context_.extension);
  return theta_ == TupeTheta::kPaper ? at::cat({theta_vectors_, rows}, 0) : rows;
}

Tupe::Projections Tupe::project(std::int64_t tokens) const {
  check_covered(name_, tokens, longest());
  const torch::Tensor rows = norm_->forward(rows_of(tokens));
  const torch::Tensor query = split_heads(query_projection_->forward(rows));
  const torch::Tensor key = split_heads(key_projection_->forward(rows));
  const std::int64_t in_front = query.size(1) - tokens;
  Projections positions;
  positions.query = query.narrow(1, in_front, tokens);
  positions.key = key.narrow(1, in_front, tokens);
  if (theta_ != TupeTheta::kNone) {
    const auto with_itself = [&](std::int64_t row) {
      return (query.select(1, row) * key.select(1, row)).sum(-1) * scale();
    };
    positions.from_cls = with_itself(0);
    positions.to_cls = with_itself(1);
  }
  if (const torch::Tensor factors = gate(); factors.defined()) {
    positions.query = positions.query * factors.view({-1, 1, 1});
    if (positions.to_cls.defined()) {
      positions.from_cls = positions.from_cls * factors;
      positions.to_cls = positions.to_cls * factors;
    }
  }
  return positions;
}

torch::Tensor Tupe::untied(const torch::Tensor& bias, const Projections& positions) const {
  return theta_ == TupeTheta::kNone ? bias : reset_cls(bias, positions.from_cls, positions.to_cls);
}

torch::Tensor Tupe::correlation(const Projections& positions, const torch::Tensor& added) const {
  const torch::Tensor query = at_least_float32(positions.query);
  const torch::Tensor key = at_least_float32(positions.key).transpose(1, 2);
  return added.defined() ? at::baddbmm(added, query, key, 1.0, scale())
                         : at::bmm(query * scale(), key);
}

}  // namespace tupelo
