// DeBERTa's enhanced mask decoder: absolute positions enter in front of the last layer only (He et
// al., "DeBERTa: Decoding-enhanced BERT with Disentangled Attention", ICLR 2021, section 3.2).
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "model/layers.h"
#include "model/position/length_extension.h"
#include "model/token_layout.h"

namespace tupelo {

// With Hs the output of the last layer but one, the last layer is applied `steps` times:
//   z_0 = Hs + position,   z_{s+1} = layer(queries and residual from z_s, keys and values from Hs)
// Parameters: position_embeddings.weight [max_positions,H].
class MaskDecoder : public torch::nn::Module {
 public:
  MaskDecoder(std::int64_t steps, std::int64_t max_positions, std::int64_t hidden_size,
              const LengthExtension& extension);
  // nullptr for "none"; "emd" or "emd(steps=2)". Throws std::invalid_argument with what is valid.
  static std::shared_ptr<MaskDecoder> make(const std::string& text, std::int64_t max_positions,
                                           std::int64_t hidden_size,
                                           const LengthExtension& extension);

  void initialize(double standard_deviation, const at::Generator& generator);
  std::int64_t steps() const { return steps_; }
  std::int64_t longest() const;

  // z_0 for Hs [B,T,H]. Throws std::invalid_argument for sequences longer than longest().
  torch::Tensor queries(const torch::Tensor& hidden, const TokenLayout& layout) const;

 private:
  std::int64_t steps_;
  LengthExtension extension_;
  std::shared_ptr<Embedding> positions_;
};

}  // namespace tupelo
