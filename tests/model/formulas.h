// The formulas of model/attention.h and of comparisons, written out plainly for tests.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>
#include <map>
#include <string>

#include "model/position/position_encoding.h"

namespace tupelo {

// [B,N,T,T], before masking.
inline torch::Tensor plain_scores(const torch::Tensor& query, const torch::Tensor& key,
                                  const AttentionTerms& terms) {
  torch::Tensor left = query, right = key;
  if (terms.query_gain.defined()) left = left * terms.query_gain;
  if (terms.query_offset.defined()) left = left + terms.query_offset;
  if (terms.key_offset.defined()) right = right + terms.key_offset;
  torch::Tensor scores = terms.scale * torch::matmul(left, right.transpose(-1, -2));
  if (terms.key_extra.defined()) {
    torch::Tensor extra = torch::zeros_like(terms.key_extra);
    if (terms.query_extra_gain.defined()) extra = extra + terms.query_extra_gain * query;
    if (terms.query_extra.defined()) extra = extra + terms.query_extra;
    scores = scores + terms.scale * torch::matmul(extra, terms.key_extra.transpose(-1, -2));
  }
  return terms.bias.defined() ? scores + terms.bias : scores;
}

// Every sample has a key.
inline torch::Tensor plain_attention(const torch::Tensor& query, const torch::Tensor& key,
                                     const torch::Tensor& value, const AttentionTerms& terms,
                                     const torch::Tensor& admissible_keys) {
  torch::Tensor scores = plain_scores(query, key, terms);
  if (admissible_keys.defined()) {
    scores = scores.masked_fill(admissible_keys.logical_not().unsqueeze(1).unsqueeze(1),
                                -std::numeric_limits<double>::infinity());
  }
  return torch::matmul(torch::softmax(scores, -1), value);
}

// max|left - right| <= tolerance, nothing infinite or NaN.
inline testing::AssertionResult near(const torch::Tensor& left, const torch::Tensor& right,
                                     double tolerance) {
  if (left.sizes() != right.sizes()) {
    return testing::AssertionFailure() << "shapes " << left.sizes() << " and " << right.sizes();
  }
  const auto difference = (left.to(torch::kFloat64) - right.to(torch::kFloat64)).abs();
  const double largest = difference.numel() == 0 ? 0.0 : difference.max().item<double>();
  const bool finite = difference.isfinite().all().item<bool>();
  if (finite && largest <= tolerance) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "largest difference " << largest << " > " << tolerance;
}

inline std::map<std::string, torch::Tensor> gradients_of(const torch::nn::Module& module) {
  std::map<std::string, torch::Tensor> gradients;
  for (const auto& parameter : module.named_parameters()) {
    if (parameter.value().grad().defined()) {
      gradients[parameter.key()] = parameter.value().grad().clone();
    }
  }
  return gradients;
}

inline void clear_gradients(torch::nn::Module& module) {
  for (auto& parameter : module.parameters()) parameter.mutable_grad() = torch::Tensor();
}

// Adds N(0, deviation^2) to every parameter: biases, norms and temperatures away from special
// values.
inline void perturb(torch::nn::Module& module, double deviation) {
  torch::NoGradGuard no_grad;
  for (auto& parameter : module.parameters())
    parameter.add_(torch::randn_like(parameter), deviation);
}

}  // namespace tupelo
