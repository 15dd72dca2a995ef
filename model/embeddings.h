// From token ids to the input of the first layer.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>

#include "model/layers.h"
#include "model/position/input_encoding.h"
#include "model/token_layout.h"

namespace tupelo {

struct EmbeddingsOptions {
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t max_positions = 0;
  std::int64_t pad_id = 0;
  double dropout = 0.0;
  double layer_norm_epsilon = 1e-5;
  InputPosition position;
  LengthExtension extension = {};
};

// Parameters: word_embeddings, token_type_embeddings (one row), position_embeddings.* (those of the
// input encoding), LayerNorm.
class Embeddings : public torch::nn::Module {
 public:
  explicit Embeddings(const EmbeddingsOptions& options);
  void initialize(double standard_deviation, std::uint64_t seed);

  // dropout(LN(positions on (word + token type 0))), [B,T,H], or [2B,T,H] when the encoding makes
  // hidden states complex, for input_ids [B,T] int64. Throws std::invalid_argument when a sequence
  // is longer than the encoding covers.
  torch::Tensor forward(const torch::Tensor& input_ids, const TokenLayout& layout);

  // nullptr for "none".
  const std::shared_ptr<InputEncoding>& position() const { return position_; }
  // The tied decoder's matrix, [V,H].
  const torch::Tensor& word_table() const { return words_->weight; }

 private:
  double dropout_;
  std::shared_ptr<Embedding> words_;
  std::shared_ptr<InputEncoding> position_;
  std::shared_ptr<Embedding> token_types_;
  std::shared_ptr<LayerNorm> norm_;
};

}  // namespace tupelo
