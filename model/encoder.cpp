#include "model/encoder.h"

#include <string>

#include "model/layers.h"
#include "model/recompute.h"

namespace tupelo {
namespace {

torch::Tensor recomputed_layer(const std::shared_ptr<EncoderLayer>& layer,
                               const torch::Tensor& hidden, const torch::Tensor& memory,
                               const AttentionTerms& terms, const TokenLayout& layout) {
  // Position terms enter like the hidden state: computed outside, their gradients leave the segment
  // and meet those of the group's other layers.
  std::vector<torch::Tensor> inputs = terms.tensors();
  inputs.push_back(hidden);
  const bool with_memory = memory.defined();
  if (with_memory) {
    inputs.push_back(memory);
  }
  const Segment segment = [layer, terms, layout,
                           with_memory](const std::vector<torch::Tensor>& given) {
    const std::size_t last = given.size() - 1;
    return with_memory
               ? layer->forward(given[last - 1], given[last], terms.with_tensors(given), layout)
               : layer->forward(given[last], {}, terms.with_tensors(given), layout);
  };
  return recompute(segment, inputs, layer->parameters());
}

}  // namespace

Encoder::Encoder(const EncoderOptions& options)
    : recomputed_(static_cast<std::size_t>(options.layers), false) {
  const auto list = register_module("layer", std::make_shared<torch::nn::Module>("layer"));
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    const ContentBiases biases = options.content_biases.empty()
                                     ? ContentBiases()
                                     : options.content_biases.at(static_cast<std::size_t>(layer));
    layers_.push_back(list->register_module(std::to_string(layer),
                                            std::make_shared<EncoderLayer>(options, biases)));
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
                               const TokenLayout& layout, const MaskDecoder* decoder,
                               AttentionObserver* observer) const {
  TORCH_CHECK(terms_of_layer.size() == layers_.size());
  const std::size_t plain_layers = layers_.size() - (decoder != nullptr ? 1 : 0);
  for (std::size_t i = 0; i < plain_layers; ++i) {
    hidden = apply(i, hidden, {}, terms_of_layer[i], layout, observer);
  }
  if (decoder == nullptr) {
    return hidden;
  }
  const torch::Tensor memory = hidden;
  hidden = decoder->queries(memory, layout);
  for (std::int64_t step = 0; step < decoder->steps(); ++step) {
    hidden = apply(plain_layers, hidden, memory, terms_of_layer.back(), layout, observer);
  }
  return hidden;
}

torch::Tensor Encoder::apply(std::size_t layer, const torch::Tensor& hidden,
                             const torch::Tensor& memory, const AttentionTerms& terms,
                             const TokenLayout& layout, AttentionObserver* observer) const {
  // Without gradients there is nothing to be computed again, and an observer may look on.
  if (recomputed_[layer] && torch::GradMode::is_enabled()) {
    return recomputed_layer(layers_[layer], hidden, memory, terms, layout);
  }
  if (observer != nullptr) {
    observer->enter_layer(static_cast<std::int64_t>(layer));
  }
  return layers_[layer]->forward(hidden, memory, terms, layout, observer);
}

}  // namespace tupelo
