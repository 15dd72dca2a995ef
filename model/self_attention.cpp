#include "model/self_attention.h"

#include "model/dropout.h"
#include "model/encoder.h"

namespace tupelo {
namespace {

// A linear map that may be used twice in one application of the layer. Its gradients then add up
// behind nodes of its own, before they meet those of other applications (model/mask_decoder.h): in
// the same order whether the layer is recomputed or not.
class Projection {
 public:
  Projection(const Linear& linear, bool used_twice)
      : weight_(used_twice ? linear.weight.alias() : linear.weight),
        bias_(used_twice && linear.bias.defined() ? linear.bias.alias() : linear.bias) {}

  torch::Tensor operator()(const torch::Tensor& input) const {
    return at::linear(input, weight_, bias_);
  }

 private:
  torch::Tensor weight_, bias_;
};

}  // namespace

SelfAttention::SelfAttention(const EncoderOptions& options, const ContentBiases& biases)
    : heads_(options.heads),
      dropout_(options.dropout),
      attention_dropout_(options.attention_dropout) {
  const std::int64_t hidden = options.hidden_size;
  const auto self = register_module("self", std::make_shared<torch::nn::Module>("self"));
  query_ = self->register_module("query", std::make_shared<Linear>(hidden, hidden, biases.query));
  key_ = self->register_module("key", std::make_shared<Linear>(hidden, hidden, biases.key));
  value_ = self->register_module("value", std::make_shared<Linear>(hidden, hidden, biases.value));
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

torch::Tensor SelfAttention::forward(const torch::Tensor& hidden, const torch::Tensor& memory,
                                     const AttentionTerms& terms, const TokenLayout& layout,
                                     AttentionObserver* observer) const {
  const torch::Tensor& attended = memory.defined() ? memory : hidden;
  const bool rows = terms.relative_rows.defined();
  const Projection key_map(*key_, rows && terms.relative_rows_as_keys);
  const Projection query_map(*query_, rows && terms.relative_rows_as_queries);
  const AttentionTerms own_terms = with_projected_rows(terms, key_map, query_map);
  const bool complex = terms.complex_scores != ComplexScores::kNone;
  const auto heads_of = [&](const torch::Tensor& projected) {
    const torch::Tensor heads = split_heads(projected);
    return complex ? at::cat(heads.chunk(2, 0), -1) : heads;
  };
  // In this order of their own: it decides how their gradients add up in `hidden`, to the bit.
  const torch::Tensor projected_value = value_->forward(attended);
  const torch::Tensor projected_key = key_map(attended);
  const torch::Tensor projected_query = query_map(hidden);
  const torch::Tensor context = layout.over_sequences(
      {projected_query, projected_key, projected_value},
      [&](const std::vector<torch::Tensor>& projected, const SequenceBatch& sequences) {
        const torch::Tensor query = heads_of(projected[0]), key = heads_of(projected[1]);
        const torch::Tensor value = heads_of(projected[2]);  // [S,N,t,D] each
        const AttentionTerms sequence_terms = own_terms.first(sequences.longest);
        if (observer != nullptr) {
          observer->attend({query, key, value, sequence_terms, sequences.admissible});
        }
        return merge_heads(attention(query, key, value, sequence_terms, sequences.admissible,
                                     is_training() ? attention_dropout_ : 0.0),
                           complex);
      });  // [B,T,H]
  return norm_->forward(hidden + dropout(dense_->forward(context), is_training() ? dropout_ : 0.0));
}

// [S,t,H] -> [S,N,t,D]
torch::Tensor SelfAttention::split_heads(const torch::Tensor& projected) const {
  return projected.view({projected.size(0), projected.size(1), heads_, -1}).transpose(1, 2);
}

// [S,N,t,D] -> [S,t,H]; [S,N,t,2D] -> [2S,t,H], real parts first.
torch::Tensor SelfAttention::merge_heads(const torch::Tensor& heads, bool complex) const {
  const torch::Tensor parts = complex ? at::cat(heads.chunk(2, -1), 0) : heads;
  return parts.transpose(1, 2).flatten(2);
}

AttentionTerms SelfAttention::with_projected_rows(AttentionTerms terms, const Map& key_map,
                                                  const Map& query_map) const {
  if (!terms.relative_rows.defined()) {
    return terms;
  }
  const torch::Tensor rows = terms.relative_rows.unsqueeze(0);  // [1,2R+1,H]
  if (terms.relative_rows_as_keys) {
    terms.relative_key = split_heads(key_map(rows))[0];
  }
  if (terms.relative_rows_as_queries) {
    terms.relative_query = split_heads(query_map(rows))[0];
  }
  return terms;
}

}  // namespace tupelo
