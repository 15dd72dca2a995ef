// Every position's vector from the one before it, by a cell without input (the recursive form of
// Liu et al., "Learning to Encode Position for Transformer with Continuous Dynamical Model", 2020,
// section 2).
#include <cmath>

#include "model/layers.h"
#include "model/position/input_table.h"
#include "model/position/kinds.h"
#include "model/token_layout.h"

namespace tupelo {
namespace {

using torch::Tensor;

// p_0 = start, p_{t+1} = tanh(weight p_t + bias). Parameters: start [H], weight [H,H], bias [H].
class RecursiveInput : public InputTable {
 public:
  RecursiveInput(const InputContext& context, const OptionReader& reader)
      : InputTable(merge_of(reader)),
        start_(register_parameter("start", torch::zeros({context.hidden_size}))),
        weight_(
            register_parameter("weight", torch::zeros({context.hidden_size, context.hidden_size}))),
        bias_(register_parameter("bias", torch::zeros({context.hidden_size}))) {}

  void initialize(double standard_deviation, const at::Generator& generator) override {
    torch::NoGradGuard no_grad;
    fill_normal(start_, standard_deviation, generator);
    start_.add_(neutral());
    // Neither dies out nor explodes within a sequence.
    fill_normal(weight_, 1.0 / std::sqrt(static_cast<double>(start_.size(0))), generator);
    bias_.zero_();
  }

  std::vector<std::string> undecayed_parameters() const override { return {"start", "bias"}; }

 protected:
  Tensor vectors(const InputTokens& tokens, const Tensor&) override {
    return rows_of_tokens(trajectory(tokens.layout.longest()), tokens);
  }

 private:
  Tensor trajectory(std::int64_t positions) const {
    const Tensor weight = at_least_float32(weight_), bias = at_least_float32(bias_);
    std::vector<Tensor> rows = {at_least_float32(start_)};
    for (std::int64_t position = 1; position < positions; ++position) {
      rows.push_back(at::addmv(bias, weight, rows.back()).tanh());
    }
    return at::stack(rows);
  }

  Tensor start_;
  Tensor weight_;
  Tensor bias_;
};

std::vector<PositionOptionKind> input_recursive_options() { return {InputTable::merge_option()}; }

}  // namespace

InputEncodingKind recursive_input_kind() {
  return {"recursive",
          "each position's vector computed from the one before it",
          input_recursive_options(),
          {},
          [](const InputContext& context,
             const PositionOptions& given) -> std::shared_ptr<InputEncoding> {
            return std::make_shared<RecursiveInput>(
                context, OptionReader(input_owner("recursive"), input_recursive_options(), given));
          }};
}

}  // namespace tupelo
