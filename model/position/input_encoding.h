// Position encodings that act on the token embeddings, in front of the first layer.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "model/position/attention_terms.h"
#include "model/position/length_extension.h"
#include "model/position/position_option.h"
#include "model/position/resizable_table.h"

namespace tupelo {

class TokenLayout;

struct InputContext {
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t max_positions = 0;  // N: longest sequence that tables cover
  std::int64_t pad_id = 0;
  LengthExtension extension = {};
};

// What stands at the input: token ids [B,T] int64 and which of them form sequences.
struct InputTokens {
  const torch::Tensor& ids;
  const TokenLayout& layout;
};

class InputEncoding : public torch::nn::Module {
 public:
  // [B,T,H] with positions, for embeddings [B,T,H] of words and token types, before the layer norm.
  // Encodings with complex hidden states return [2B,T,H], real parts first. Positions are those
  // within a sequence. Throws std::invalid_argument, naming both lengths, for a longer sequence
  // than the encoding covers.
  virtual torch::Tensor forward(const torch::Tensor& embeddings, const InputTokens& tokens) = 0;

  virtual void initialize(double standard_deviation, const at::Generator& generator) = 0;
  // Names (relative to this module) of parameters that weight decay must leave alone.
  virtual std::vector<std::string> undecayed_parameters() const { return {}; }

  // Longest sequence, with the extension taken into account.
  virtual std::int64_t longest() const { return kAnyLength; }
  // As for PositionEncoding.
  virtual std::vector<ResizableTable> resizable_tables() const { return {}; }
  virtual PositionOptions pinned_options() const { return {}; }
  virtual ComplexScores complex_scores() const { return ComplexScores::kNone; }
  // [B,T,H] from what the last layer returns; the identity unless hidden states are complex.
  virtual torch::Tensor collapse(const torch::Tensor& hidden) { return hidden; }
};

// One row per input encoding, as for PositionEncodingKind.
struct InputEncodingKind {
  std::string name;
  std::string summary;
  std::vector<PositionOptionKind> options;
  std::vector<std::string> option_help;
  std::shared_ptr<InputEncoding> (*make)(const InputContext&, const PositionOptions&) = nullptr;
};
const std::vector<InputEncodingKind>& input_encoding_kinds();

// "none", "NAME" or "NAME(option=value,...)" checked and in canonical form. Throws
// std::invalid_argument with the nearest name, or what the option may be.
struct InputPosition {
  std::string name = "none";
  PositionOptions options;  // those that differ from their defaults

  static InputPosition parse(const std::string& text);
  std::string to_string() const;
  // nullptr for "none".
  std::shared_ptr<InputEncoding> make(const InputContext& context) const;
};

}  // namespace tupelo
