// A trained vector per position (Devlin et al., "BERT", 2019; RoBERTa's numbering).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/position/input_table.h"

namespace tupelo {

// Parameter `weight` [pad_id+1+N,H]. The tokens of a sequence use the rows from pad_id + 1 on;
// padding uses row pad_id, which changes nothing and is not trained; the rows before it are idle.
// Where rows of a batch are sequences, every id other than pad_id counts as a token.
class LearnedInput : public InputTable {
 public:
  // Covers extended_length(positions, extension).
  LearnedInput(std::string name, const InputContext& context, std::int64_t positions,
               const LengthExtension& extension, InputMerge merge);

  void initialize(double standard_deviation, const at::Generator& generator) override;
  // Decay would pull factors away from 1.
  std::vector<std::string> undecayed_parameters() const override;
  std::int64_t longest() const override { return longest_; }
  std::vector<ResizableTable> resizable_tables() const override {
    return {{"weight", ResizableTable::Rows::kPositions, padding_row_ + 1}};
  }

 protected:
  torch::Tensor vectors(const InputTokens& tokens, const torch::Tensor& like) override;

 private:
  torch::Tensor row_numbers(const InputTokens& tokens) const;

  std::string name_;
  std::int64_t padding_row_;
  std::int64_t longest_;
  LengthExtension extension_;
  torch::Tensor weight_;
};

}  // namespace tupelo
