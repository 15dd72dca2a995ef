#include "model/position/tupe.h"

#include <cmath>
#include <utility>

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

Tupe::Tupe(std::string name, const PositionContext& context, const OptionReader& options)
    : name_(std::move(name)), context_(context), theta_(theta_of(options)) {
  const std::int64_t hidden = context.heads * context.head_width;
  const std::int64_t rows = context.max_positions + (theta_ == TupeTheta::kOfficial ? 1 : 0);
  table_ = register_module("pos", std::make_shared<Embedding>(rows, hidden));
  norm_ =
      register_module("pos_ln", std::make_shared<LayerNorm>(hidden, context.layer_norm_epsilon));
  query_projection_ = register_module("pos_q_linear", std::make_shared<Linear>(hidden, hidden));
  key_projection_ = register_module("pos_k_linear", std::make_shared<Linear>(hidden, hidden));
  if (theta_ == TupeTheta::kPaper) {
    theta_vectors_ = register_parameter("theta", torch::zeros({2, hidden}));
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
}

std::vector<std::string> Tupe::undecayed_parameters() const {
  return {"pos_ln.weight", "pos_ln.bias", "pos_q_linear.bias", "pos_k_linear.bias"};
}

double Tupe::scale() const {
  return 1.0 / std::sqrt(2.0 * static_cast<double>(context_.head_width));
}

torch::Tensor Tupe::split_heads(const torch::Tensor& rows) const {
  return rows.view({rows.size(0), context_.heads, context_.head_width}).transpose(0, 1);
}

Tupe::Projections Tupe::project(std::int64_t tokens) const {
  check_covered(name_, tokens, context_.max_positions);
  // In front of the tokens' rows stand those that only serve the thetas, so that theta 1 is always
  // the product of row 0 with itself and theta 2 that of row 1.
  torch::Tensor rows =
      table_->weight.narrow(0, 0, tokens + (theta_ == TupeTheta::kOfficial ? 1 : 0));
  if (theta_ == TupeTheta::kPaper) {
    rows = at::cat({theta_vectors_, rows}, 0);
  }
  rows = norm_->forward(rows);
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
  return positions;
}

torch::Tensor Tupe::correlation(const Projections& positions, const torch::Tensor& added) const {
  const torch::Tensor query = at_least_float32(positions.query);
  const torch::Tensor key = at_least_float32(positions.key).transpose(1, 2);
  return added.defined() ? at::baddbmm(added, query, key, 1.0, scale())
                         : at::bmm(query * scale(), key);
}

}  // namespace tupelo
