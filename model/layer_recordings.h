// Layers that a device runs again from recordings of their kernels, instead of launching each: what
// CUDA graphs are for. Worth it where kernels are so short that launching them takes longer.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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
// Recorded are full rows of one shape, once kWarmUps forward passes of it have run as ever; so do
// all of other shapes. A shape takes the place of another one that has not come for so long. A
// recording keeps the memory of its activations and of one set of gradients. A forward pass
// overwrites the results of the one before: each is followed by its backward pass. Not thread-safe.
class LayerRecordings {
 public:
  static constexpr int kWarmUps = 3;
  using Layer = std::shared_ptr<EncoderLayer>;

  // `make_twin` makes a layer like one of `layers`, by its number, of any values. A twin shares its
  // parameters' memory, but not their gradients. (Gradient accumulators of the layers' own
  // parameters belong to streams that a recording must not wait for.)
  LayerRecordings(std::vector<Layer> layers, std::function<Layer(std::size_t)> make_twin,
                  WorkRecorder recorder);
  ~LayerRecordings();

  // Before a forward pass with gradients of `hidden` [B,T,H] under these terms, one per layer:
  // whether forward() is to be called for the layers in `wanted`, in ascending order, in this pass.
  // Layers next to each other hand on results without copying.
  bool prepare(const torch::Tensor& hidden, const std::vector<AttentionTerms>& terms_of_layer,
               const TokenLayout& layout, const std::vector<std::size_t>& wanted);
  // As EncoderLayer::forward, for a layer of `wanted`, with the terms that prepare() saw.
  torch::Tensor forward(std::size_t layer, const torch::Tensor& hidden,
                        const AttentionTerms& terms) const;

 private:
  struct Recording;
  struct SharedTerms;
  using Shape = std::vector<std::int64_t>;

  bool is_due(const Shape& shape);
  bool are_current() const;
  void drop();
  void record(const torch::Tensor& hidden, const std::vector<AttentionTerms>& terms_of_layer,
              const SharedTerms& shared, const TokenLayout& layout,
              const std::vector<std::size_t>& wanted);
  std::shared_ptr<Recording> recorded_forward(std::size_t layer, const torch::Tensor& input,
                                              const AttentionTerms& terms,
                                              const TokenLayout& layout) const;

  std::vector<Layer> layers_;
  std::function<Layer(std::size_t)> make_twin_;
  WorkRecorder recorder_;
  Shape recorded_shape_;       // empty: none
  std::map<Shape, int> seen_;  // passes of shapes that are not recorded, since something was
  int passes_of_others_ = 0;   // in a row, since one of the recorded shape
  std::vector<std::shared_ptr<Recording>> recordings_;  // by layer; null where there is none
  std::vector<torch::Tensor> terms_;                    // what recordings read instead of terms
};

}  // namespace tupelo
