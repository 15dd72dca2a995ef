// Layers that a device runs again from recordings of their kernels, instead of launching each: what
// CUDA graphs are for. Worth it where kernels are so short that launching them takes longer.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/encoder_layer.h"
#include "model/position/position_encoding.h"
#include "model/recorded_work.h"
#include "model/token_layout.h"

namespace tupelo {

// The layers of one encoder, forward and backward, each a recording of its own, so that gradients
// still arrive layer by layer. Results and gradients are those of the layers themselves.
//
// Recorded are full rows of one shape after kWarmUps forward passes of that shape in a row, which
// run as ever; whatever else comes meanwhile does too. A recording keeps the memory of its
// activations and of one set of gradients, and is dropped for one of another shape. A forward pass
// overwrites the results of the one before: each is followed by its backward pass. Not thread-safe.
class LayerRecordings {
 public:
  static constexpr int kWarmUps = 3;
  using Layers = std::vector<std::shared_ptr<EncoderLayer>>;

  // `twins` are layers like `layers`, of any values; they come to share the parameters' memory, but
  // not their gradients. (Gradient accumulators of the layers' own parameters belong to streams
  // that a recording must not wait for.)
  LayerRecordings(Layers layers, Layers twins, WorkRecorder recorder);
  ~LayerRecordings();

  // Before a forward pass with gradients of `hidden` [B,T,H] under these terms, one per layer:
  // whether forward() may be called for the layers in `wanted`, in ascending order, in this pass.
  // Layers next to each other hand on results without copying.
  bool prepare(const torch::Tensor& hidden, const std::vector<AttentionTerms>& terms_of_layer,
               const TokenLayout& layout, const std::vector<std::size_t>& wanted);
  // As EncoderLayer::forward, for a layer of `wanted`.
  torch::Tensor forward(std::size_t layer, const torch::Tensor& hidden,
                        const AttentionTerms& terms) const;

 private:
  struct Recording;
  using Shape = std::vector<std::int64_t>;

  bool are_current() const;
  c10::intrusive_ptr<Recording> recorded_forward(std::size_t layer, const torch::Tensor& input,
                                                 const AttentionTerms& terms,
                                                 const TokenLayout& layout) const;
  void record(const torch::Tensor& hidden, const std::vector<AttentionTerms>& terms_of_layer,
              const TokenLayout& layout, const std::vector<std::size_t>& wanted);

  Layers layers_, twins_;
  WorkRecorder recorder_;
  Shape recorded_shape_, seen_shape_;                      // empty: none
  int seen_ = 0;                                           // forward passes of seen_shape_ in a row
  std::vector<c10::intrusive_ptr<Recording>> recordings_;  // by layer; null where there is none
};

}  // namespace tupelo
