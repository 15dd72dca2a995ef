// What a position encoding offers to a layer. Formulas: docs/positions.md.
//
// Shape letters: B batch, T tokens, H hidden, N heads, D head width, P position width (here and in
// model/encoder.h).
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/position/position_option.h"

namespace tupelo {

// Everything that a group's encoding adds to the attention of its layers, computed once per forward
// pass and handed to each of them:
//   scores = scale * [(query_gain q + query_offset)(k + key_offset)^T
//                     + (query_extra_gain q + query_extra) key_extra^T] + bias
// Undefined tensors mean "nothing": offset, extra and bias 0, query_gain 1, query_extra_gain 0. The
// extra features are there when key_extra is; E is their width, E = D where query_extra_gain is
// used.
struct AttentionTerms {
  double scale = 0.0;
  torch::Tensor bias;              // [N,T,T], float32 or wider, independent of the input
  torch::Tensor query_gain;        // [N,1,1]
  torch::Tensor query_offset;      // [N,T,D]
  torch::Tensor key_offset;        // [N,T,D]
  torch::Tensor query_extra_gain;  // [N,1,1]
  torch::Tensor query_extra;       // [N,T,E]
  torch::Tensor key_extra;         // [N,T,E]

  // The defined tensors in a fixed order, and the same terms around other tensors in that order.
  std::vector<torch::Tensor> tensors() const;
  AttentionTerms with_tensors(const std::vector<torch::Tensor>& tensors) const;
};

// The terms of `none`: scale 1 / sqrt(head_width).
AttentionTerms plain_attention_terms(std::int64_t head_width);

struct PositionContext {
  std::int64_t heads = 0;
  std::int64_t head_width = 0;
  std::int64_t max_positions = 0;  // N of the formulas: longest sequence that tables cover
  double layer_norm_epsilon = 1e-5;
};

// One object per group of layers. Its parameters are the group's; layers of a group share them.
class PositionEncoding : public torch::nn::Module {
 public:
  // Terms for sequences of `tokens` tokens (1 <= tokens <= max_positions), differentiable with
  // respect to the encoding's parameters. Called once per forward pass and group. Throws
  // std::invalid_argument for a longer sequence than the tables cover, naming both lengths.
  virtual AttentionTerms terms(std::int64_t tokens) = 0;

  // Draws initial values from `generator` (on the CPU); `standard_deviation` is the model's (0.02).
  virtual void initialize(double standard_deviation, const at::Generator& generator) = 0;

  // Names (relative to this module) of parameters that weight decay must leave alone.
  virtual std::vector<std::string> undecayed_parameters() const = 0;

  // Defaults for the optimizer's `position` parameter group.
  virtual double learning_rate_multiplier() const { return 1.0; }
};

// One row per attention encoding. A new encoding is a new file and a new row.
struct PositionEncodingKind {
  std::string name;
  std::string summary;
  std::vector<PositionOptionKind> options;
  // "pp=relative|dot|both|none (relative): ...", one per option.
  std::vector<std::string> option_help;
  std::shared_ptr<PositionEncoding> (*make)(const PositionContext&,
                                            const PositionOptions&) = nullptr;
  std::vector<std::string> aliases = {};
};
const std::vector<PositionEncodingKind>& position_encoding_kinds();

// The row called `name`, or by one of its aliases. Throws std::invalid_argument with the nearest
// name and all of them.
const PositionEncodingKind& position_encoding_kind(const std::string& name);

// Throws std::invalid_argument with the nearest known name, or the options that the encoding knows.
std::shared_ptr<PositionEncoding> make_position_encoding(const std::string& name,
                                                         const PositionContext& context,
                                                         const PositionOptions& options);

}  // namespace tupelo
