#include "model/sentence_order_head.h"

namespace tupelo {

Pooler::Pooler(std::int64_t hidden_size)
    : dense_(register_module("dense", std::make_shared<Linear>(hidden_size, hidden_size))) {}

void Pooler::initialize(double standard_deviation, std::uint64_t seed) {
  dense_->initialize(standard_deviation, initial_value_generator(seed, "pooler.dense"));
}

torch::Tensor Pooler::forward(const torch::Tensor& first_tokens) const {
  return at::tanh(dense_->forward(first_tokens));
}

SentenceOrderHead::SentenceOrderHead(std::int64_t hidden_size)
    : classifier_(register_module("classifier", std::make_shared<Linear>(hidden_size, 2))) {}

void SentenceOrderHead::initialize(double standard_deviation, std::uint64_t seed) {
  classifier_->initialize(standard_deviation,
                          initial_value_generator(seed, "sop_classifier.classifier"));
}

torch::Tensor SentenceOrderHead::forward(const torch::Tensor& pooled) const {
  return classifier_->forward(pooled);
}

}  // namespace tupelo
