#include "model/encoder.h"

#include <string>
#include <utility>

#include "model/layers.h"
#include "model/recompute.h"

namespace tupelo {
namespace {

// The terms behind a node for each tensor: gradients of one layer add up before they meet those of
// the group's other layers, in the same order whether the layer is recomputed or not.
AttentionTerms gathered(const AttentionTerms& terms) {
  std::vector<torch::Tensor> tensors = terms.tensors();
  for (torch::Tensor& tensor : tensors) {
    if (tensor.requires_grad()) {
      tensor = tensor.alias();
    }
  }
  return terms.with_tensors(tensors);
}

// The attention half, or the whole layer, without keeping its activations.
torch::Tensor recomputed_attention(const std::shared_ptr<EncoderLayer>& layer, bool whole,
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
  const Segment segment = [layer, terms, layout, with_memory,
                           whole](const std::vector<torch::Tensor>& given) {
    const std::size_t state = given.size() - (with_memory ? 2 : 1);
    const torch::Tensor attended =
        layer->attention_half(given[state], with_memory ? given.back() : torch::Tensor(),
                              terms.with_tensors(given), layout);
    return whole ? layer->feed_forward_half(attended) : attended;
  };
  return recompute(segment, inputs, whole ? layer->parameters() : layer->attention_parameters());
}

torch::Tensor recomputed_feed_forward(const std::shared_ptr<EncoderLayer>& layer,
                                      const torch::Tensor& attended) {
  const Segment segment = [layer](const std::vector<torch::Tensor>& given) {
    return layer->feed_forward_half(given.front());
  };
  return recompute(segment, {attended}, layer->feed_forward_parameters());
}

// A layer as `options` describe number `layer`, of initial values.
std::shared_ptr<EncoderLayer> make_layer(const EncoderOptions& options, std::size_t layer) {
  return std::make_shared<EncoderLayer>(
      options, options.content_biases.empty() ? ContentBiases() : options.content_biases.at(layer));
}

}  // namespace

Encoder::Encoder(const EncoderOptions& options)
    : options_(options),
      recomputed_(static_cast<std::size_t>(options.layers), Recomputed::kNothing) {
  const auto list = register_module("layer", std::make_shared<torch::nn::Module>("layer"));
  for (std::size_t layer = 0; layer < recomputed_.size(); ++layer) {
    layers_.push_back(list->register_module(std::to_string(layer), make_layer(options, layer)));
  }
  if (!options.recompute.empty()) {
    recompute(options.recompute);
  }
}

void Encoder::recompute(const std::vector<Recomputed>& layers) {
  TORCH_CHECK(layers.size() == layers_.size(), "a policy for ", layers.size(), " layers of ",
              layers_.size());
  recomputed_ = layers;
}

void Encoder::record_layers(WorkRecorder recorder) {
  recordings_ = std::make_unique<LayerRecordings>(
      layers_, [this](std::size_t layer) { return make_layer(options_, layer); },
      std::move(recorder));
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
  const bool recorded =
      observer == nullptr && prepare_recordings(hidden, terms_of_layer, layout, plain_layers);
  for (std::size_t i = 0; i < plain_layers; ++i) {
    if (gate_) {
      gate_(static_cast<std::int64_t>(i));
    }
    hidden = recorded && keeps_all(i) ? recordings_->forward(i, hidden, terms_of_layer[i])
                                      : apply(i, hidden, {}, terms_of_layer[i], layout, observer);
  }
  if (decoder == nullptr) {
    return hidden;
  }
  if (gate_) {
    gate_(static_cast<std::int64_t>(plain_layers));
  }
  const torch::Tensor memory = hidden;
  hidden = decoder->queries(memory, layout);
  for (std::int64_t step = 0; step < decoder->steps(); ++step) {
    hidden = apply(plain_layers, hidden, memory, terms_of_layer.back(), layout, observer);
  }
  return hidden;
}

// Whether those of the first layers that keep all are recorded for this pass.
bool Encoder::prepare_recordings(const torch::Tensor& hidden,
                                 const std::vector<AttentionTerms>& terms,
                                 const TokenLayout& layout, std::size_t plain_layers) const {
  if (!recordings_ || !torch::GradMode::is_enabled() || !is_training()) {
    return false;
  }
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < plain_layers; ++i) {
    if (keeps_all(i)) {
      wanted.push_back(i);
    }
  }
  return recordings_->prepare(hidden, terms, layout, wanted);
}

torch::Tensor Encoder::apply(std::size_t layer, const torch::Tensor& hidden,
                             const torch::Tensor& memory, const AttentionTerms& terms,
                             const TokenLayout& layout, AttentionObserver* observer) const {
  const std::shared_ptr<EncoderLayer>& own = layers_[layer];
  // Without gradients there is nothing to be computed again, and an observer may look on.
  const bool with_gradients = torch::GradMode::is_enabled();
  const Recomputed part = with_gradients ? recomputed_[layer] : Recomputed::kNothing;
  if (part == Recomputed::kLayer) {
    return recomputed_attention(own, /*whole=*/true, hidden, memory, terms, layout);
  }
  if (part == Recomputed::kAttention) {
    return own->feed_forward_half(
        recomputed_attention(own, /*whole=*/false, hidden, memory, terms, layout));
  }
  if (observer != nullptr) {
    observer->enter_layer(static_cast<std::int64_t>(layer));
  }
  const torch::Tensor attended =
      own->attention_half(hidden, memory.defined() && with_gradients ? memory.alias() : memory,
                          with_gradients ? gathered(terms) : terms, layout, observer);
  return part == Recomputed::kFeedForward ? recomputed_feed_forward(own, attended)
                                          : own->feed_forward_half(attended);
}

}  // namespace tupelo
