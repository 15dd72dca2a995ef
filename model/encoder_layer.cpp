#include "model/encoder_layer.h"

#include "model/border_convolution.h"
#include "model/dropout.h"
#include "model/encoder.h"

namespace tupelo {

EncoderLayer::EncoderLayer(const EncoderOptions& options, const ContentBiases& biases)
    : dropout_(options.dropout) {
  attention_ = register_module("attention", std::make_shared<SelfAttention>(options, biases));
  const auto intermediate =
      register_module("intermediate", std::make_shared<torch::nn::Module>("intermediate"));
  widening_ = intermediate->register_module(
      "dense", std::make_shared<Linear>(options.hidden_size, options.intermediate_size));
  const auto output = register_module("output", std::make_shared<torch::nn::Module>("output"));
  narrowing_ = output->register_module(
      "dense", std::make_shared<Linear>(options.intermediate_size, options.hidden_size));
  norm_ = output->register_module(
      "LayerNorm", std::make_shared<LayerNorm>(options.hidden_size, options.layer_norm_epsilon));
}

void EncoderLayer::initialize(double standard_deviation, const at::Generator& generator) {
  attention_->initialize(standard_deviation, generator);
  widening_->initialize(standard_deviation, generator);
  narrowing_->initialize(standard_deviation, generator);
  norm_->initialize();
}

torch::Tensor EncoderLayer::forward(const torch::Tensor& hidden, const torch::Tensor& memory,
                                    const AttentionTerms& terms, const TokenLayout& layout,
                                    AttentionObserver* observer) const {
  return feed_forward_half(attention_half(hidden, memory, terms, layout, observer));
}

torch::Tensor EncoderLayer::attention_half(const torch::Tensor& hidden, const torch::Tensor& memory,
                                           const AttentionTerms& terms, const TokenLayout& layout,
                                           AttentionObserver* observer) const {
  const torch::Tensor input =
      terms.convolution_weight.defined()
          ? border_convolution(hidden, terms.convolution_weight, terms.convolution_bias, layout)
          : hidden;
  return attention_->forward(input, memory, terms, layout, observer);
}

torch::Tensor EncoderLayer::feed_forward_half(const torch::Tensor& attended) const {
  const torch::Tensor wide = at::gelu(widening_->forward(attended));  // [B,T,intermediate]
  return norm_->forward(attended +
                        dropout(narrowing_->forward(wide), is_training() ? dropout_ : 0.0));
}

std::vector<torch::Tensor> EncoderLayer::attention_parameters() const {
  return attention_->parameters();
}

std::vector<torch::Tensor> EncoderLayer::feed_forward_parameters() const {
  std::vector<torch::Tensor> all;
  for (const auto& parameters :
       {widening_->parameters(), narrowing_->parameters(), norm_->parameters()}) {
    all.insert(all.end(), parameters.begin(), parameters.end());
  }
  return all;
}

}  // namespace tupelo
