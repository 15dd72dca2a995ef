// Input encodings that are a vector per position, and how vectors meet embeddings.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "model/position/input_encoding.h"
#include "model/position/option_reader.h"

namespace tupelo {

enum class InputMerge {
  kAdd,           // x + p
  kMultiply,      // x * p; learned vectors start around 1
  kMultiplyByOne  // x * (1 + p)
};

class InputTable : public InputEncoding {
 public:
  static PositionOptionKind merge_option();
  static InputMerge merge_of(const OptionReader& options);

  torch::Tensor forward(const torch::Tensor& embeddings, const InputTokens& tokens) override;

 protected:
  explicit InputTable(InputMerge merge) : merge_(merge) {}

  // One vector per token, [T,H] or [B,T,H], on the device of the embeddings `like`.
  virtual torch::Tensor vectors(const InputTokens& tokens, const torch::Tensor& like) = 0;

  // From rows [P,H] of positions 0, 1, ... to one per token. P >= the longest sequence.
  static torch::Tensor rows_of_tokens(const torch::Tensor& rows, const InputTokens& tokens);

  // The vector that changes nothing, and what learned vectors are drawn around.
  double neutral() const { return merge_ == InputMerge::kMultiply ? 1.0 : 0.0; }

 private:
  InputMerge merge_;
};

}  // namespace tupelo
