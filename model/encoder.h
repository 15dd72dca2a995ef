// The stack of layers.
//
// Shape letters, for the whole of model/:
//   B  sequences of the batch      T  tokens of a sequence      H  hidden size, N * D
//   N  attention heads             D  width of a head           L  layers
//   V  vocabulary                  M  masked tokens             P  width of a position table
//   E  extra features of a head
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "model/encoder_layer.h"
#include "model/layer_recordings.h"
#include "model/mask_decoder.h"
#include "model/position/position_encoding.h"
#include "model/recompute_policy.h"

namespace tupelo {

struct EncoderOptions {
  std::int64_t layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t heads = 0;
  std::int64_t intermediate_size = 0;
  double dropout = 0.0;
  double attention_dropout = 0.0;
  double layer_norm_epsilon = 1e-5;
  std::vector<Recomputed> recompute;          // one per layer; empty: nothing
  std::vector<ContentBiases> content_biases;  // one per layer; empty: all biases
};

// Parameters: layer.<n>.*
class Encoder : public torch::nn::Module {
 public:
  explicit Encoder(const EncoderOptions& options);
  // Each layer's values depend on `seed` and its own number only.
  void initialize(double standard_deviation, std::uint64_t seed);

  // hidden [B,T,H] ([2B,T,H] when it is complex); terms_of_layer: L entries, which layers of a
  // group share. Returns the shape of hidden. Halves of layers that are to be recomputed keep only
  // their input when gradients are wanted; whatever they are, gradients are the same bits. With a
  // mask decoder the last layer is applied as that says. `decoder` and `observer` may be nullptr;
  // the observer does not see recomputed attention.
  torch::Tensor forward(torch::Tensor hidden, const std::vector<AttentionTerms>& terms_of_layer,
                        const TokenLayout& layout, const MaskDecoder* decoder,
                        AttentionObserver* observer) const;

  // `gate` is called with the number of each layer before a forward pass enters it.
  void before_layers(std::function<void(std::int64_t)> gate) { gate_ = std::move(gate); }
  // From now on layers that keep all their activations are recorded where LayerRecordings does, but
  // for the one that a mask decoder repeats.
  void record_layers(WorkRecorder recorder);
  // What is recomputed from now on, one entry per layer.
  void recompute(const std::vector<Recomputed>& layers);
  const EncoderLayer& layer(std::size_t index) const { return *layers_.at(index); }

 private:
  bool prepare_recordings(const torch::Tensor& hidden, const std::vector<AttentionTerms>& terms,
                          const TokenLayout& layout, std::size_t plain_layers) const;
  bool keeps_all(std::size_t layer) const { return recomputed_[layer] == Recomputed::kNothing; }
  torch::Tensor apply(std::size_t layer, const torch::Tensor& hidden, const torch::Tensor& memory,
                      const AttentionTerms& terms, const TokenLayout& layout,
                      AttentionObserver* observer) const;

  EncoderOptions options_;
  std::vector<std::shared_ptr<EncoderLayer>> layers_;
  std::vector<Recomputed> recomputed_;
  std::function<void(std::int64_t)> gate_;       // or none
  std::unique_ptr<LayerRecordings> recordings_;  // or none
};

}  // namespace tupelo
