#include "model/position/input_table.h"

#include "model/token_layout.h"

namespace tupelo {

PositionOptionKind InputTable::merge_option() {
  return {"merge",
          "add",
          {"add", "mul", "mul1p"},
          "how positions p meet embeddings x: x + p, x p, x (1 + p)"};
}

InputMerge InputTable::merge_of(const OptionReader& options) {
  const std::string& text = options.text("merge");
  return text == "add" ? InputMerge::kAdd
                       : (text == "mul" ? InputMerge::kMultiply : InputMerge::kMultiplyByOne);
}

torch::Tensor InputTable::forward(const torch::Tensor& embeddings, const InputTokens& tokens) {
  const torch::Tensor positions = vectors(tokens, embeddings).to(embeddings.scalar_type());
  switch (merge_) {
    case InputMerge::kAdd:
      return embeddings + positions;
    case InputMerge::kMultiply:
      return embeddings * positions;
    case InputMerge::kMultiplyByOne:
      break;
  }
  // Not x * (1 + p): in half precision the sum with 1 would round small p away.
  return at::addcmul(embeddings, embeddings, positions);
}

torch::Tensor InputTable::rows_of_tokens(const torch::Tensor& rows, const InputTokens& tokens) {
  const torch::Tensor& positions = tokens.layout.positions();
  return positions.defined() ? at::embedding(rows, positions)
                             : rows.narrow(0, 0, tokens.ids.size(1));
}

}  // namespace tupelo
