// A small RoBERTa and a batch for it.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "model/roberta.h"

namespace tupelo {

inline ModelOptions tiny_options(const std::string& position, std::int64_t layers = 2) {
  ModelOptions options;
  options.vocab_size = 31;
  options.hidden_size = 12;
  options.layers = layers;
  options.heads = 3;
  options.intermediate_size = 20;
  options.max_positions = 16;
  options.pad_id = 1;
  options.dropout = options.attention_dropout = 0.0;
  options.initializer_range = 0.3;  // so that attention is far from uniform
  options.input_position = position == "all:none" ? "learned" : "none";
  options.position = position;
  return options;
}

inline std::shared_ptr<RobertaForMaskedLm> tiny_model(const ModelOptions& options,
                                                      torch::ScalarType type = torch::kFloat64) {
  auto model = std::make_shared<RobertaForMaskedLm>(options);
  model->initialize(3);
  model->to(type);
  return model;
}

// Ids without padding, every third token masked.
struct TinyBatch {
  TinyBatch(std::int64_t rows, std::int64_t tokens)
      : input_ids(torch::randint(2, 31, {rows, tokens}, torch::kInt64)),
        masked_positions(torch::arange(0, rows * tokens, 3, torch::kInt64)),
        labels(torch::randint(2, 31, {masked_positions.size(0)}, torch::kInt64)) {}

  // The last `count` tokens of every row but the first become padding.
  void pad(std::int64_t count) {
    const std::int64_t rows = input_ids.size(0), tokens = input_ids.size(1);
    attention_mask = torch::ones({rows, tokens}, torch::kBool);
    attention_mask.narrow(0, 1, rows - 1).narrow(1, tokens - count, count).fill_(false);
    input_ids = input_ids.masked_fill(attention_mask.logical_not(), 1);
    const torch::Tensor real = attention_mask.flatten().index_select(0, masked_positions);
    labels = labels.masked_select(real);
    masked_positions = masked_positions.masked_select(real);
  }

  torch::Tensor loss(RobertaForMaskedLm& model) const {
    return model.masked_lm_loss(input_ids, attention_mask, masked_positions, labels).loss_sum;
  }

  torch::Tensor input_ids;
  torch::Tensor attention_mask;
  torch::Tensor masked_positions;
  torch::Tensor labels;
};

// Holds the gradients of the parameters whose names begin with `prefix`, which a backward pass of
// batch.loss(model) left there, to central differences along a random direction.
inline void expect_finite_differences(RobertaForMaskedLm& model, const TinyBatch& batch,
                                      const std::string& prefix) {
  constexpr double kStep = 1e-5;
  for (const auto& parameter : model.named_parameters()) {
    if (parameter.key().rfind(prefix, 0) != 0) continue;
    torch::Tensor value = parameter.value();
    ASSERT_TRUE(value.grad().defined()) << parameter.key();
    const torch::Tensor direction = torch::randn_like(value);
    const double expected = (value.grad() * direction).sum().item<double>();
    const auto loss_at = [&](double step) {
      torch::NoGradGuard no_grad;
      value.add_(direction, step);
      const double loss = batch.loss(model).item<double>();
      value.sub_(direction, step);
      return loss;
    };
    const double measured = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
    EXPECT_NEAR(measured, expected, 1e-6 * std::max(1.0, std::abs(expected))) << parameter.key();
  }
}

}  // namespace tupelo
