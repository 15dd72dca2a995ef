#include "model/embeddings.h"

#include "model/dropout.h"

namespace tupelo {

Embeddings::Embeddings(const EmbeddingsOptions& options) : dropout_(options.dropout) {
  const std::int64_t hidden = options.hidden_size;
  words_ = register_module("word_embeddings",
                           std::make_shared<Embedding>(options.vocab_size, hidden, options.pad_id));
  position_ = options.position.make(
      {options.vocab_size, hidden, options.max_positions, options.pad_id, options.extension});
  if (position_) {
    register_module("position_embeddings", position_);
  }
  token_types_ = register_module("token_type_embeddings", std::make_shared<Embedding>(1, hidden));
  norm_ =
      register_module("LayerNorm", std::make_shared<LayerNorm>(hidden, options.layer_norm_epsilon));
}

void Embeddings::initialize(double standard_deviation, std::uint64_t seed) {
  words_->initialize(standard_deviation, initial_value_generator(seed, "word_embeddings"));
  token_types_->initialize(standard_deviation,
                           initial_value_generator(seed, "token_type_embeddings"));
  if (position_) {
    position_->initialize(standard_deviation, initial_value_generator(seed, "position_embeddings"));
  }
  norm_->initialize();
}

torch::Tensor Embeddings::forward(const torch::Tensor& input_ids, const TokenLayout& layout) {
  torch::Tensor sum = words_->forward(input_ids) + token_types_->weight[0];
  if (position_) {
    sum = position_->forward(sum, {input_ids, layout});
  }
  return dropout(norm_->forward(sum), is_training() ? dropout_ : 0.0);
}

}  // namespace tupelo
