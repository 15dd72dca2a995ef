// The formulas of model/attention.h and of comparisons, written out plainly for tests.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "model/position/position_encoding.h"

namespace tupelo {

// [T,T] int64: clip(j - i, -reach, reach) + reach.
inline torch::Tensor distance_index(std::int64_t tokens, std::int64_t reach) {
  const torch::Tensor place = torch::arange(tokens, torch::kInt64);
  return (place.unsqueeze(0) - place.unsqueeze(1)).clamp(-reach, reach) + reach;
}

// The rows [N,T,T,D] of a table of distances [N or 1,2R+1,D]: entry (i,j) for distance j - i.
inline torch::Tensor rows_of_distances(const torch::Tensor& table, std::int64_t tokens) {
  const torch::Tensor index = distance_index(tokens, (table.size(1) - 1) / 2);
  return table.index_select(1, index.flatten()).unflatten(1, {tokens, tokens});
}

// Pairs of features turned by the angles of `cos` and `sin` [T,E/2], written with complex numbers.
inline torch::Tensor plain_turn(const torch::Tensor& features, const torch::Tensor& cos,
                                const torch::Tensor& sin, RotationLayout layout) {
  const std::int64_t half = features.size(-1) / 2;
  const bool interleaved = layout == RotationLayout::kInterleaved;
  const torch::Tensor pairs =
      interleaved ? features.unflatten(-1, {half, 2}) : features.unflatten(-1, {2, half}).mT();
  const torch::Tensor turned =
      torch::view_as_real(torch::complex(pairs.select(-1, 0), pairs.select(-1, 1)) *
                          torch::complex(cos.to(features.dtype()), sin.to(features.dtype())));
  return interleaved ? turned.flatten(-2) : turned.mT().flatten(-2);
}

inline torch::Tensor plain_rotation(const torch::Tensor& head, const AttentionTerms& terms) {
  return terms.rotation_cos.defined()
             ? plain_turn(head, terms.rotation_cos, terms.rotation_sin, terms.rotation_layout)
             : head;
}

// [B,1,1,1] or 1, for sequences of the given lengths.
inline torch::Tensor plain_temperature(const AttentionTerms& terms, const torch::Tensor& lengths) {
  const torch::Tensor log_length =
      torch::clamp_min(lengths, terms.temperature == LengthTemperature::kAtLeast16 ? 16 : 2)
          .to(torch::kFloat64)
          .log();
  torch::Tensor factor = log_length / std::log(static_cast<double>(terms.temperature_length));
  if (terms.temperature == LengthTemperature::kAtLeastOne) factor = factor.clamp_min(1.0);
  return factor.view({-1, 1, 1, 1});
}

// [B,N,T,T], before masking, entry by entry as model/position/attention_terms.h says.
inline torch::Tensor plain_scores(const torch::Tensor& query_in, const torch::Tensor& key_in,
                                  const AttentionTerms& terms,
                                  const torch::Tensor& admissible_keys = {}) {
  const torch::Tensor query = plain_rotation(query_in, terms);
  const torch::Tensor key = plain_rotation(key_in, terms);
  const std::int64_t tokens = query.size(2);
  torch::Tensor left = query, right = key;
  if (terms.query_gain.defined()) left = left * terms.query_gain;
  if (terms.query_offset.defined()) left = left + terms.query_offset;
  if (terms.key_offset.defined()) right = right + terms.key_offset;
  torch::Tensor products = torch::matmul(left, right.transpose(-1, -2));
  if (terms.key_extra.defined()) {
    torch::Tensor extra = torch::zeros_like(terms.key_extra);
    if (terms.query_extra_gain.defined()) extra = extra + terms.query_extra_gain * query;
    if (terms.query_extra.defined()) extra = extra + terms.query_extra;
    products = products + torch::matmul(extra, terms.key_extra.transpose(-1, -2));
  }
  torch::Tensor seeking = query;
  if (terms.relative_query_offset.defined()) seeking = seeking + terms.relative_query_offset;
  if (terms.relative_key.defined()) {
    const torch::Tensor rows = rows_of_distances(terms.relative_key, tokens);
    products = products + (seeking.unsqueeze(3) * rows).sum(-1);
  }
  if (terms.relative_query.defined()) {
    const torch::Tensor rows = rows_of_distances(terms.relative_query, tokens);
    products = products + (key.unsqueeze(2) * rows).sum(-1);
  }
  if (terms.phase_key.defined()) {
    if (terms.phase_map.defined()) seeking = torch::matmul(seeking, terms.phase_map);
    const torch::Tensor turned =
        plain_turn(seeking, terms.phase_cos, -terms.phase_sin, terms.phase_layout);
    products = products + torch::matmul(turned, terms.phase_key.to(turned.dtype()).t());
  }
  if (terms.temperature != LengthTemperature::kOff) {
    const torch::Tensor lengths = admissible_keys.defined()
                                      ? admissible_keys.sum(-1)
                                      : torch::full({query.size(0)}, tokens, torch::kInt64);
    products = products * plain_temperature(terms, lengths);
  }
  const torch::Tensor scores = terms.scale * products;
  return terms.bias.defined() ? scores + terms.bias : scores;
}

// [B,N,T,D]; zeros for a query without any key.
inline torch::Tensor plain_attention(const torch::Tensor& query, const torch::Tensor& key,
                                     const torch::Tensor& value_in, const AttentionTerms& terms,
                                     const torch::Tensor& admissible_keys) {
  torch::Tensor scores = plain_scores(query, key, terms, admissible_keys);
  if (admissible_keys.defined()) {
    scores = scores.masked_fill(admissible_keys.logical_not().unsqueeze(1).unsqueeze(1),
                                -std::numeric_limits<double>::infinity());
  }
  torch::Tensor value = terms.rotate_values ? plain_rotation(value_in, terms) : value_in;
  if (terms.value_offset.defined()) value = value + terms.value_offset;
  const torch::Tensor keyless = scores.isinf().all(-1, /*keepdim=*/true);
  const torch::Tensor probabilities =
      torch::softmax(scores.masked_fill(keyless, 0.0), -1).masked_fill(keyless, 0.0);
  torch::Tensor result = torch::matmul(probabilities, value);
  if (terms.relative_value.defined()) {
    const torch::Tensor rows = rows_of_distances(terms.relative_value, value.size(2));
    result = result + (probabilities.unsqueeze(-1) * rows).sum(3);
  }
  if (terms.phase_value.defined()) {
    const torch::Tensor mixed =
        torch::matmul(probabilities, terms.phase_value.to(probabilities.dtype()));
    result = result + plain_turn(mixed, terms.phase_cos, terms.phase_sin, terms.phase_layout);
  }
  return result;
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
