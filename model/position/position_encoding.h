// What a position encoding offers to a layer. Formulas: docs/positions.md.
//
// Shape letters: B batch, T tokens, H hidden, N heads, D head width, P position width (here and in
// model/encoder.h).
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

namespace tupelo {

// Everything that a group's encoding adds to the attention of its layers, computed once per forward pass
// and handed to each of them:
//   scores = scale * (query_gain q + query_offset)(k + key_offset)^T + bias
// Undefined tensors mean "nothing" (offset 0, bias 0, gain 1).
struct AttentionTerms {
  double scale = 0.0;
  torch::Tensor bias;          // [N,T,T], independent of the input
  torch::Tensor query_gain;    // [N,1,1]
  torch::Tensor query_offset;  // [N,T,D]
  torch::Tensor key_offset;    // [N,T,D]
};

struct PositionContext {
  std::int64_t heads = 0;
  std::int64_t head_width = 0;
  std::int64_t max_positions = 0;  // N of the formulas: longest sequence that tables cover
  double layer_norm_epsilon = 1e-5;
};

// One object per group of layers. Its parameters are the group's; layers of a group share them.
class PositionEncoding : public torch::nn::Module {
 public:
  // Terms for sequences of `tokens` tokens (1 <= tokens <= max_positions), differentiable with respect to
  // the encoding's parameters. Called once per forward pass and group. Throws std::invalid_argument for a
  // longer sequence than the tables cover, naming both lengths.
  virtual AttentionTerms terms(std::int64_t tokens) = 0;

  // Draws initial values from the current generator; `standard_deviation` is the model's (0.02).
  virtual void initialize(double standard_deviation) = 0;

  // Names (relative to this module) of parameters that weight decay must leave alone.
  virtual std::vector<std::string> undecayed_parameters() const = 0;

  // Defaults for the optimizer's `position` parameter group.
  virtual double learning_rate_multiplier() const { return 1.0; }
};

// Options of a plan entry, e.g. {"pp","dot"},{"scale","joint"}, in the order written.
using PositionOptions = std::vector<std::pair<std::string, std::string>>;

// One row per attention encoding. A new encoding is a new file and a new row.
struct PositionEncodingKind {
  std::string name;
  std::string summary;
  std::vector<std::string> option_help;  // "pp=relative|dot|both|none (relative): ..."
  std::shared_ptr<PositionEncoding> (*make)(const PositionContext&, const PositionOptions&);
};
const std::vector<PositionEncodingKind>& position_encoding_kinds();

// Throws std::invalid_argument with the nearest known name, or the options that the encoding knows.
std::shared_ptr<PositionEncoding> make_position_encoding(const std::string& name,
                                                         const PositionContext& context,
                                                         const PositionOptions& options);

}  // namespace tupelo
