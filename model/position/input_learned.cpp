#include "model/position/input_learned.h"

#include <utility>

#include "model/layers.h"
#include "model/position/kinds.h"
#include "model/token_layout.h"

namespace tupelo {

LearnedInput::LearnedInput(std::string name, const InputContext& context, std::int64_t positions,
                           const LengthExtension& extension, InputMerge merge)
    : InputTable(merge),
      name_(std::move(name)),
      padding_row_(context.pad_id),
      longest_(extended_length(positions, extension)),
      extension_(extension),
      weight_(register_parameter(
          "weight", torch::zeros({padding_row_ + 1 + positions, context.hidden_size}))) {}

void LearnedInput::initialize(double standard_deviation, const at::Generator& generator) {
  torch::NoGradGuard no_grad;
  fill_normal(weight_, standard_deviation, generator);
  weight_.add_(neutral());
  weight_[padding_row_].fill_(neutral());
}

std::vector<std::string> LearnedInput::undecayed_parameters() const {
  return neutral() == 0.0 ? std::vector<std::string>() : std::vector<std::string>{"weight"};
}

torch::Tensor LearnedInput::vectors(const InputTokens& tokens, const torch::Tensor&) {
  const std::int64_t length = tokens.layout.longest();
  check_covered(name_, length, longest_);
  const std::int64_t in_front = padding_row_ + 1;
  const torch::Tensor table =
      in_front + length <= weight_.size(0)
          ? weight_
          : extended_table(weight_, in_front, in_front + length, extension_);
  return at::embedding(table, row_numbers(tokens), padding_row_);
}

torch::Tensor LearnedInput::row_numbers(const InputTokens& tokens) const {
  const torch::Tensor& positions = tokens.layout.positions();
  if (!positions.defined()) {
    const torch::Tensor real = tokens.ids.ne(padding_row_).to(torch::kInt64);
    return real.cumsum(1).mul_(real).add_(padding_row_);
  }
  const torch::Tensor rows = positions + (padding_row_ + 1);
  const torch::Tensor& real = tokens.layout.real();
  return real.defined() ? rows.masked_fill(real.logical_not(), padding_row_) : rows;
}

namespace {

std::vector<PositionOptionKind> input_learned_options() { return {InputTable::merge_option()}; }

}  // namespace

InputEncodingKind learned_input_kind() {
  return {"learned",
          "a trained vector per position",
          input_learned_options(),
          {},
          [](const InputContext& context,
             const PositionOptions& given) -> std::shared_ptr<InputEncoding> {
            const OptionReader reader(input_owner("learned"), input_learned_options(), given);
            return std::make_shared<LearnedInput>("learned", context, context.max_positions,
                                                  context.extension, InputTable::merge_of(reader));
          }};
}

}  // namespace tupelo
