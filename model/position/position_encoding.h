// What a position encoding offers to the layers of a group. Formulas: docs/positions.md.
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
#include <vector>

#include "model/position/attention_terms.h"
#include "model/position/length_extension.h"
#include "model/position/position_option.h"
#include "model/position/resizable_table.h"

namespace tupelo {

struct PositionContext {
  std::int64_t heads = 0;
  std::int64_t head_width = 0;
  std::int64_t max_positions = 0;  // N of the formulas: longest sequence that tables cover
  double layer_norm_epsilon = 1e-5;
  std::int64_t layers = 1;         // of the group
  LengthExtension extension = {};  // rules for sequences longer than max_positions

  std::int64_t hidden_size() const { return heads * head_width; }
};

// Which of a layer's own query, key and value maps have a bias.
struct ContentBiases {
  bool query = true, key = true, value = true;
};

// The position part of the scores by itself, for reports. Scaled as in the scores; undefined where
// an encoding has no such part.
struct PositionPicture {
  torch::Tensor correlation;    // [N,T,T]: position with position, independent of the input
  torch::Tensor distance_bias;  // [N,2T-1]: entry r + T - 1 for distance r = j - i
};

// One object per group of layers. Its parameters are the group's; layers of a group share them.
class PositionEncoding : public torch::nn::Module {
 public:
  static constexpr std::int64_t kAnyLength = tupelo::kAnyLength;

  // Terms for sequences of `tokens` >= 1 tokens, differentiable with respect to the encoding's
  // parameters; those for a shorter sequence are their first(). Called once per forward pass and
  // group. Throws std::invalid_argument, naming both lengths, for a longer sequence than longest().
  virtual AttentionTerms terms(std::int64_t tokens) = 0;
  // One entry per layer of the group. By default all share terms(tokens).
  virtual std::vector<AttentionTerms> layer_terms(std::int64_t tokens, std::int64_t layers);

  // Draws initial values from `generator` (on the CPU); `standard_deviation` is the model's (0.02).
  virtual void initialize(double standard_deviation, const at::Generator& generator);

  // Names (relative to this module) of parameters that weight decay must leave alone.
  virtual std::vector<std::string> undecayed_parameters() const { return {}; }
  // Defaults for the optimizer's `position` parameter group.
  virtual double learning_rate_multiplier() const { return 1.0; }

  // Longest sequence, with the extension taken into account.
  virtual std::int64_t longest() const { return kAnyLength; }
  // Parameters with a number of rows that follows from max_positions.
  virtual std::vector<ResizableTable> resizable_tables() const { return {}; }
  // What options that follow from max_positions must say for the encoding to stay what it is when
  // max_positions changes, as long as their tables are resized.
  virtual PositionOptions pinned_options() const { return {}; }
  virtual ContentBiases content_biases() const { return {}; }
  // Called under NoGradGuard by reports. By default the bias of terms() is the correlation.
  virtual PositionPicture picture(std::int64_t tokens);
  // Floating-point operations of one terms(tokens), multiply and add counted apart.
  virtual double terms_flops(std::int64_t tokens) const;
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
