#include "model/encoder.h"

#include <string>

#include "model/layers.h"
#include "model/recompute.h"

namespace tupelo {
namespace {

torch::Tensor recomputed_layer(const std::shared_ptr<EncoderLayer>& layer,
                               const torch::Tensor& hidden, const AttentionTerms& terms,
                               const torch::Tensor& admissible_keys) {
  // Position terms enter like the hidden state: computed outside, their gradients leave the segment
  // and meet those of the group's other layers.
  std::vector<torch::Tensor> inputs = terms.tensors();
  inputs.push_back(hidden);
  const Segment segment = [layer, terms, admissible_keys](const std::vector<torch::Tensor>& given) {
    return layer->forward(given.back(), terms.with_tensors(given), admissible_keys);
  };
  return recompute(segment, inputs, layer->parameters());
}

}  // namespace

Encoder::Encoder(const EncoderOptions& options)
    : recomputed_(static_cast<std::size_t>(options.layers), false) {
  const auto list = register_module("layer", std::make_shared<torch::nn::Module>("layer"));
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    layers_.push_back(
        list->register_module(std::to_string(layer), std::make_shared<EncoderLayer>(options)));
  }
  for (const std::int64_t layer : options.recomputed_layers) {
    recomputed_.at(static_cast<std::size_t>(layer)) = true;
  }
}

void Encoder::initialize(double standard_deviation, std::uint64_t seed) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layers_[i]->initialize(standard_deviation,
                           initial_value_generator(seed, "encoder.layer." + std::to_string(i)));
  }
}

torch::Tensor Encoder::forward(torch::Tensor hidden,
                               const std::vector<AttentionTerms>& terms_of_layer,
                               const torch::Tensor& admissible_keys) const {
  TORCH_CHECK(terms_of_layer.size() == layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    hidden = recomputed_[i]
                 ? recomputed_layer(layers_[i], hidden, terms_of_layer[i], admissible_keys)
                 : layers_[i]->forward(hidden, terms_of_layer[i], admissible_keys);
  }
  return hidden;
}

}  // namespace tupelo
