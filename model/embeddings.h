// From token ids to the input of the first layer.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "model/layers.h"
#include "model/position/position_option.h"
#include "model/position/sinusoidal.h"

namespace tupelo {

// The encoding that is added at the input.
class InputPosition {
 public:
  enum class Kind { kNone, kLearned, kSinusoidal };

  // "none", "learned", "sinusoidal" or "sinusoidal(layout=interleaved|concat|t2t)".
  // Throws std::invalid_argument with the nearest name, or what the option may be.
  static InputPosition parse(const std::string& text);

  Kind kind = Kind::kNone;
  SinusoidLayout layout = SinusoidLayout::kInterleaved;
};

struct EmbeddingsOptions {
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t max_positions = 0;
  std::int64_t pad_id = 0;
  double dropout = 0.0;
  double layer_norm_epsilon = 1e-5;
  InputPosition position;
};

// Parameters: word_embeddings, token_type_embeddings (one row), position_embeddings (learned only),
// LayerNorm.
class Embeddings : public torch::nn::Module {
 public:
  explicit Embeddings(const EmbeddingsOptions& options);
  void initialize(double standard_deviation, std::uint64_t seed);

  // dropout(LN(word + token type 0 + position)), [B,T,H], for input_ids [B,T] int64. Learned
  // positions count non-padding tokens from pad_id + 1; sinusoids count columns from 0. Throws
  // std::invalid_argument when T exceeds a learned table.
  torch::Tensor forward(const torch::Tensor& input_ids);

  // The tied decoder's matrix, [V,H].
  const torch::Tensor& word_table() const { return words_->weight; }

 private:
  torch::Tensor learned_positions(const torch::Tensor& input_ids) const;
  torch::Tensor sinusoids(std::int64_t tokens);

  EmbeddingsOptions options_;
  std::shared_ptr<Embedding> words_;
  std::shared_ptr<Embedding> positions_;
  std::shared_ptr<Embedding> token_types_;
  std::shared_ptr<LayerNorm> norm_;
  torch::Tensor sinusoids_;  // [>=T,H] of the latest dtype and device; never saved, never cast
};

}  // namespace tupelo
