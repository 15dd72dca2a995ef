#include "model/self_attention.h"

#include "model/attention.h"
#include "model/dropout.h"
#include "model/encoder.h"

namespace tupelo {

SelfAttention::SelfAttention(const EncoderOptions& options)
    : heads_(options.heads),
      dropout_(options.dropout),
      attention_dropout_(options.attention_dropout) {
  const std::int64_t hidden = options.hidden_size;
  const auto self = register_module("self", std::make_shared<torch::nn::Module>("self"));
  query_ = self->register_module("query", std::make_shared<Linear>(hidden, hidden));
  key_ = self->register_module("key", std::make_shared<Linear>(hidden, hidden));
  value_ = self->register_module("value", std::make_shared<Linear>(hidden, hidden));
  const auto output = register_module("output", std::make_shared<torch::nn::Module>("output"));
  dense_ = output->register_module("dense", std::make_shared<Linear>(hidden, hidden));
  norm_ = output->register_module("LayerNorm",
                                  std::make_shared<LayerNorm>(hidden, options.layer_norm_epsilon));
}

void SelfAttention::initialize(double standard_deviation, const at::Generator& generator) {
  for (const auto& linear : {query_, key_, value_, dense_}) {
    linear->initialize(standard_deviation, generator);
  }
  norm_->initialize();
}

torch::Tensor SelfAttention::forward(const torch::Tensor& hidden, const AttentionTerms& terms,
                                     const torch::Tensor& admissible_keys) const {
  const torch::Tensor context =
      attention(split_heads(query_->forward(hidden)), split_heads(key_->forward(hidden)),
                split_heads(value_->forward(hidden)), terms, admissible_keys,
                is_training() ? attention_dropout_ : 0.0);          // [B,N,T,D]
  const torch::Tensor merged = context.transpose(1, 2).flatten(2);  // [B,T,H]
  return norm_->forward(hidden + dropout(dense_->forward(merged), is_training() ? dropout_ : 0.0));
}

// [B,T,H] -> [B,N,T,D]
torch::Tensor SelfAttention::split_heads(const torch::Tensor& projected) const {
  return projected.view({projected.size(0), projected.size(1), heads_, -1}).transpose(1, 2);
}

}  // namespace tupelo
