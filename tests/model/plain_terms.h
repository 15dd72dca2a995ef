// The formula of model/position/attention_terms.h term by term, for tests. It shares nothing with
// the code that attends: every distance gets its vector in a [N,T,T,D] tensor.
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "model/position/attention_terms.h"

namespace tupelo {

// [T,T] int64: clip(j - i, -reach, reach) + reach.
inline torch::Tensor distance_index(std::int64_t tokens, std::int64_t reach) {
  torch::Tensor index = torch::empty({tokens, tokens}, torch::kInt64);
  for (std::int64_t i = 0; i < tokens; ++i) {
    for (std::int64_t j = 0; j < tokens; ++j) {
      index[i][j] = std::min(std::max(j - i, -reach), reach) + reach;
    }
  }
  return index;
}

// table [M,2R+1,D] as [M,T,T,D]: the vector of every pair's distance.
inline torch::Tensor vector_per_pair(const torch::Tensor& table, std::int64_t tokens) {
  const torch::Tensor index = distance_index(tokens, (table.size(1) - 1) / 2);
  return table.index_select(1, index.flatten())
      .view({table.size(0), tokens, tokens, table.size(2)});
}

// Pairs of features of x [...,T,E] turned by the angle of their row, or back by it.
inline torch::Tensor turned(const torch::Tensor& x, const torch::Tensor& cos,
                            const torch::Tensor& sin, RotationLayout layout,
                            double direction = 1.0) {
  std::vector<torch::Tensor> columns(static_cast<std::size_t>(x.size(-1)));
  const std::int64_t half = x.size(-1) / 2;
  for (std::int64_t m = 0; m < half; ++m) {
    const bool interleaved = layout == RotationLayout::kInterleaved;
    const std::int64_t first = interleaved ? 2 * m : m, second = interleaved ? 2 * m + 1 : m + half;
    const torch::Tensor a = x.select(-1, first), b = x.select(-1, second);
    const torch::Tensor c = cos.select(-1, m).to(x.scalar_type());
    const torch::Tensor s = sin.select(-1, m).to(x.scalar_type()) * direction;
    columns[static_cast<std::size_t>(first)] = a * c - b * s;
    columns[static_cast<std::size_t>(second)] = a * s + b * c;
  }
  return torch::stack(columns, -1);
}

inline torch::Tensor or_zero(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor : torch::zeros({1}, torch::kFloat32);
}

// [B,N,T,T] before masking, for real hidden states and no length temperature.
inline torch::Tensor term_scores(const torch::Tensor& query, const torch::Tensor& key,
                                 const AttentionTerms& terms) {
  torch::Tensor q = query, k = key;
  const std::int64_t tokens = q.size(2);
  if (terms.rotation_cos.defined()) {
    q = turned(q, terms.rotation_cos, terms.rotation_sin, terms.rotation_layout);
    k = turned(k, terms.rotation_cos, terms.rotation_sin, terms.rotation_layout);
  }
  const torch::Tensor gained = terms.query_gain.defined() ? q * terms.query_gain : q;
  torch::Tensor products = torch::einsum(
      "bhid,bhjd->bhij", {gained + or_zero(terms.query_offset), k + or_zero(terms.key_offset)});
  if (terms.key_extra.defined()) {
    torch::Tensor extra = or_zero(terms.query_extra).expand_as(terms.key_extra);
    if (terms.query_extra_gain.defined()) extra = extra + terms.query_extra_gain * q;
    products = products + torch::matmul(extra, terms.key_extra.transpose(-1, -2));
  }
  const torch::Tensor with_offset = q + or_zero(terms.relative_query_offset);
  if (terms.relative_key.defined()) {
    const torch::Tensor vectors = vector_per_pair(terms.relative_key, tokens);
    products = products + (with_offset.unsqueeze(3) * vectors).sum(-1);
  }
  if (terms.relative_query.defined()) {
    const torch::Tensor vectors = vector_per_pair(terms.relative_query, tokens);
    products = products + (k.unsqueeze(2) * vectors).sum(-1);
  }
  if (terms.phase_key.defined()) {
    torch::Tensor mapped = with_offset;
    if (terms.phase_map.defined()) {
      mapped = torch::einsum("bhid,hde->bhie", {with_offset, terms.phase_map});
    }
    const torch::Tensor back =
        turned(mapped, terms.phase_cos, terms.phase_sin, terms.phase_layout, -1.0);
    products = products + torch::einsum("bhie,je->bhij", {back, terms.phase_key});
  }
  const torch::Tensor scores = terms.scale * products;
  return terms.bias.defined() ? scores + terms.bias : scores;
}

// [B,N,T,D]; zeros for a query without any key.
inline torch::Tensor term_result(const torch::Tensor& query, const torch::Tensor& key,
                                 const torch::Tensor& value, const AttentionTerms& terms,
                                 const torch::Tensor& admissible_keys) {
  const torch::Tensor scores = term_scores(query, key, terms);
  torch::Tensor blocked = scores.isinf();
  if (admissible_keys.defined()) {
    blocked = blocked | admissible_keys.logical_not().unsqueeze(1).unsqueeze(1);
  }
  const torch::Tensor keyless = blocked.all(-1, /*keepdim=*/true);
  const torch::Tensor open = blocked & keyless.logical_not();
  const torch::Tensor probabilities =
      torch::softmax(scores.masked_fill(keyless, 0.0)
                         .masked_fill(open, -std::numeric_limits<double>::infinity()),
                     -1)
          .masked_fill(keyless, 0.0);
  torch::Tensor v = value;
  if (terms.rotate_values) {
    v = turned(v, terms.rotation_cos, terms.rotation_sin, terms.rotation_layout);
  }
  torch::Tensor result = torch::matmul(probabilities, v + or_zero(terms.value_offset));
  if (terms.relative_value.defined()) {
    const torch::Tensor vectors = vector_per_pair(terms.relative_value, query.size(2));
    result = result + (probabilities.unsqueeze(-1) * vectors).sum(3);
  }
  if (terms.phase_value.defined()) {
    const torch::Tensor mixed = torch::matmul(probabilities, terms.phase_value);
    result = result + turned(mixed, terms.phase_cos, terms.phase_sin, terms.phase_layout);
  }
  return result;
}

}  // namespace tupelo
