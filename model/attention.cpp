#include "model/attention.h"

#include "model/attention_operands.h"
#include "model/biased_attention.h"
#include "model/complex_attention.h"
#include "model/fused_attention.h"
#include "model/relative_scores.h"
#include "model/rotation.h"

namespace tupelo {
namespace {

using torch::Tensor;

Tensor on_path(AttentionPath path, const AttentionOperands& in, double scale, double dropout) {
  switch (path) {
    case AttentionPath::kFused:
      return fused_attention(in, scale, dropout);
    case AttentionPath::kFusedBias:
      return fused_attention_with_bias(in, scale, dropout);
    case AttentionPath::kFusedPadding:
      return fused_attention_with_padding(in, scale, dropout);
    default:
      return biased_attention(in, scale, dropout);
  }
}

// The plain sum over distances, as a [B,N,T,T] tensor of its own.
Tensor plain_relative_scores(const Tensor& input, const Tensor& table, double factor) {
  Tensor scores =
      at::zeros({input.size(0), input.size(1), input.size(2), input.size(2)}, input.options());
  add_relative_scores(scores, input, table, factor);
  return scores;
}

}  // namespace

std::string attention_path_name(AttentionPath path) {
  switch (path) {
    case AttentionPath::kOwn:
      return "own";
    case AttentionPath::kFused:
      return "fused";
    case AttentionPath::kFusedBias:
      return "fused-bias";
    case AttentionPath::kFusedPadding:
      return "fused-padding";
    case AttentionPath::kModulus:
      return "modulus";
  }
  return "";
}

AttentionPath attention_path(at::DeviceType device, const AttentionTerms& terms, bool padding) {
  if (terms.complex_scores == ComplexScores::kModulus) {
    return AttentionPath::kModulus;
  }
  // On CPUs LibTorch leaves its fused kernel whenever there is dropout or a bias that needs a
  // gradient; ours is faster than what it falls back to. Elsewhere the fused kernels know neither
  // vectors of distances nor rows without a key, and want a bias and padding as one [B,N,T,T] mask.
  const bool distances = terms.relative_key.defined() || terms.relative_query.defined() ||
                         terms.relative_value.defined() || terms.relative_rows.defined();
  const bool both = terms.bias.defined() && padding;
  if (device == at::kCPU || distances || terms.bias_blocks || both) {
    return AttentionPath::kOwn;
  }
  if (terms.bias.defined()) {
    return AttentionPath::kFusedBias;
  }
  return padding ? AttentionPath::kFusedPadding : AttentionPath::kFused;
}

Tensor attention(const Tensor& query_in, const Tensor& key_in, const Tensor& value_in,
                 const AttentionTerms& terms, const Tensor& admissible_keys, double dropout) {
  const auto turned = [&](const Tensor& head, bool wanted) {
    return terms.rotation_cos.defined() && wanted
               ? rotate(head, terms.rotation_cos, terms.rotation_sin, terms.rotation_layout)
               : head;
  };
  const Tensor query = turned(query_in, true), key = turned(key_in, true);
  const Tensor value = turned(value_in, terms.rotate_values);
  const AttentionPath path =
      attention_path(query.device().type(), terms, admissible_keys.defined());
  if (path == AttentionPath::kModulus) {
    return modulus_attention(attention_scores(query_in, key_in, terms, admissible_keys), value,
                             admissible_keys, dropout);
  }
  AttentionOperands operands = operands_of(query, key, value, terms, admissible_keys);
  if (!terms.phase_value.defined()) {
    return on_path(path, operands, terms.scale, dropout);
  }
  operands.value = widen(operands.value, terms.phase_value);
  const auto halves = on_path(path, operands, terms.scale, dropout).chunk(2, -1);
  return halves[0] + rotate(halves[1], terms.phase_cos, terms.phase_sin, terms.phase_layout);
}

Tensor attention_scores(const Tensor& query_in, const Tensor& key_in, const AttentionTerms& terms,
                        const Tensor& admissible_keys) {
  if (terms.complex_scores == ComplexScores::kModulus) {
    const Tensor scores = modulus_scores(query_in, key_in, terms.scale);
    const Tensor temperature = length_temperature(query_in, terms, admissible_keys);
    return temperature.defined() ? scores * temperature : scores;
  }
  const auto wide = at::promote_types(query_in.scalar_type(), at::kFloat);
  const auto turned = [&](const Tensor& head) {
    return terms.rotation_cos.defined() ? rotate(head.to(wide), terms.rotation_cos,
                                                 terms.rotation_sin, terms.rotation_layout)
                                        : head.to(wide);
  };
  const Tensor query = turned(query_in), key = turned(key_in);
  const AttentionOperands in = operands_of(query, key, key, terms, admissible_keys);
  Tensor scores = at::matmul(in.query, in.key.transpose(-1, -2)) * terms.scale;
  if (in.relative_key.defined()) {
    scores = scores + plain_relative_scores(in.relative_query_input, in.relative_key, terms.scale);
  }
  if (in.relative_query.defined()) {
    scores = scores +
             plain_relative_scores(in.relative_key_input, in.relative_query.flip(1), terms.scale)
                 .transpose(2, 3);
  }
  return in.bias.defined() ? scores + in.bias : scores;
}

}  // namespace tupelo
