// What a position encoding adds to the attention of a layer, as data.
//
// Shape letters: model/encoder.h; R is the farthest distance with vectors of its own.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace tupelo {

// Pairs of features that a rotation mixes (docs/positions.md, rope).
enum class RotationLayout {
  kInterleaved,  // (2m, 2m+1)
  kHalf          // (m, m + D/2)
};

// Factor on all products that depends on the number n of real keys of a sequence; N is
// temperature_length (docs/positions.md, logn).
enum class LengthTemperature {
  kOff,
  kPlain,       // ln max(n,2) / ln N
  kAtLeast16,   // ln max(n,16) / ln N
  kAtLeastOne,  // max(1, plain)
};

// How real and imaginary parts meet when hidden states are complex.
enum class ComplexScores {
  kNone,       // hidden states are real
  kHermitian,  // Re(q k^H)
  kModulus     // |q k^T|, without conjugation
};

// All members are computed once per forward pass. With q, k, v the layer's heads, rotated where
// rotation_cos is defined, and r = j - i clipped to +-R:
//   scores[i,j] = scale * temperature(n) *
//       [ (query_gain q + query_offset)_i (k + key_offset)_j
//         + (query_extra_gain q + query_extra)_i key_extra_j
//         + (q + relative_query_offset)_i relative_key_r + k_j relative_query_r
//         + turn(-i, (q + relative_query_offset)_i phase_map) phase_key_j ] + bias[i,j]
//   result[i]   = sum_j P[i,j] (v_j + value_offset_j + relative_value_r)
//                 + turn(i, sum_j P[i,j] phase_value_j)
// where turn(t, .) rotates pairs of features by the angles of row t of phase_cos and phase_sin.
// Undefined tensors mean "nothing": offsets, extra, relative vectors and bias 0, query_gain 1,
// query_extra_gain 0, phase_map the identity. The extra features are there when key_extra is, the
// phases when phase_key is; E = D where query_extra_gain is used or phase_map is not.
struct AttentionTerms {
  double scale = 0.0;

  torch::Tensor bias;          // [N,T,T], float32 or wider, independent of the input
  bool bias_blocks = false;    // the bias has entries of minus infinity, maybe whole rows of them
  torch::Tensor query_gain;    // [N,1,1]
  torch::Tensor query_offset;  // [N,T,D] or [N,1,D]
  torch::Tensor key_offset;    // [N,T,D]
  torch::Tensor value_offset;  // [N,T,D]
  torch::Tensor query_extra_gain;  // [N,1,1]
  torch::Tensor query_extra;       // [N,T,E]
  torch::Tensor key_extra;         // [N,T,E]

  // One row per distance r = -R .. R, row r + R; farther distances use the end rows.
  torch::Tensor relative_query_offset;  // [N,1,D]
  torch::Tensor relative_key;           // [N,2R+1,D] or [1,2R+1,D]
  torch::Tensor relative_query;         // [N,2R+1,D] or [1,2R+1,D]
  torch::Tensor relative_value;         // [N,2R+1,D] or [1,2R+1,D]
  // Rows that the layer's own projections turn into relative_key (by the key's, where
  // relative_rows_as_keys) and relative_query (by the query's, where relative_rows_as_queries).
  torch::Tensor relative_rows;  // [2R+1,H]
  bool relative_rows_as_keys = false;
  bool relative_rows_as_queries = false;

  // Vectors that are sinusoids of the distance, as features: the angle of
  // j - i is that of j turned back by that of i. In pairs (2m, 2m+1) or halves as phase_layout
  // says.
  torch::Tensor phase_cos;    // [T,E/2]
  torch::Tensor phase_sin;    // [T,E/2]
  torch::Tensor phase_key;    // [T,E]
  torch::Tensor phase_map;    // [N,D,E]
  torch::Tensor phase_value;  // [T,D]; needs E = D
  RotationLayout phase_layout = RotationLayout::kInterleaved;

  // Cosines and sines [T,D/2], float32 or wider; q and k are rotated in that type.
  torch::Tensor rotation_cos;
  torch::Tensor rotation_sin;
  RotationLayout rotation_layout = RotationLayout::kInterleaved;
  bool rotate_values = false;

  // x + gelu(convolution over the tokens of a sequence) enters the layer instead of x.
  torch::Tensor convolution_weight;  // [H,H/groups,odd]
  torch::Tensor convolution_bias;    // [H]

  LengthTemperature temperature = LengthTemperature::kOff;
  std::int64_t temperature_length = 0;
  ComplexScores complex_scores = ComplexScores::kNone;

  // The defined tensors in a fixed order, and the same terms around other tensors in that order.
  std::vector<torch::Tensor> tensors() const;
  AttentionTerms with_tensors(const std::vector<torch::Tensor>& tensors) const;

  // The same terms for the first `tokens` positions: views, differentiable.
  AttentionTerms first(std::int64_t tokens) const;
};

// The terms of `none`: scale 1 / sqrt(head_width).
AttentionTerms plain_attention_terms(std::int64_t head_width);

}  // namespace tupelo
