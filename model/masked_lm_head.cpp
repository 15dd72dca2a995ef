#include "model/masked_lm_head.h"

namespace tupelo {

MaskedLmHead::MaskedLmHead(std::int64_t hidden_size, std::int64_t vocab_size,
                           double layer_norm_epsilon)
    : bias_(register_parameter("bias", torch::zeros({vocab_size}))),
      dense_(register_module("dense", std::make_shared<Linear>(hidden_size, hidden_size))),
      norm_(register_module("layer_norm",
                            std::make_shared<LayerNorm>(hidden_size, layer_norm_epsilon))) {}

void MaskedLmHead::initialize(double standard_deviation, std::uint64_t seed) {
  torch::NoGradGuard no_grad;
  bias_.zero_();
  dense_->initialize(standard_deviation, initial_value_generator(seed, "lm_head.dense"));
  norm_->initialize();
}

torch::Tensor MaskedLmHead::forward(const torch::Tensor& rows,
                                    const torch::Tensor& word_table) const {
  return at::linear(norm_->forward(at::gelu(dense_->forward(rows))), word_table, bias_);
}

}  // namespace tupelo
