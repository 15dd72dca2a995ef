#include "model/attention.h"

#include <ATen/Context.h>

#include <cmath>
#include <limits>

#include "model/biased_attention.h"
#include "model/dropout.h"
#include "model/relative_scores.h"
#include "model/rotation.h"

namespace tupelo {
namespace {

using torch::Tensor;

// cuDNN's attention under a mask returned NaN gradients for some lengths (pytorch issue 196678), so
// another kernel takes masked calls. The choice is made in forward and holds for backward.
class WithoutCudnnAttention {
 public:
  WithoutCudnnAttention() { at::globalContext().setSDPUseCuDNN(false); }
  ~WithoutCudnnAttention() { at::globalContext().setSDPUseCuDNN(enabled_); }
  WithoutCudnnAttention(const WithoutCudnnAttention&) = delete;
  WithoutCudnnAttention& operator=(const WithoutCudnnAttention&) = delete;

 private:
  bool enabled_ = at::globalContext().userEnabledCuDNNSDP();
};

// The memory-efficient backward crashes when the bias alone requires a gradient (pytorch issue
// 148476), as it does below a frozen encoder: a leaf that nobody reads keeps it company.
Tensor with_some_gradient(const Tensor& query, const Tensor& bias) {
  const bool bias_alone =
      torch::GradMode::is_enabled() && bias.requires_grad() && !query.requires_grad();
  return bias_alone ? query.detach().requires_grad_() : query;
}

Tensor fused_with_bias(const Tensor& query, const Tensor& key, const Tensor& value,
                       const Tensor& bias, double scale, double dropout) {
  const WithoutCudnnAttention other_kernels;
  // Some kernels read a float32 mask as if it had the query's type (pytorch pull request 191612).
  const Tensor mask = bias.to(query.scalar_type()).unsqueeze(0);
  return at::scaled_dot_product_attention(with_some_gradient(query, bias), key, value, mask,
                                          dropout,
                                          /*is_causal=*/false, scale);
}

// Kernels disagree about rows without a key, so samples without any see all keys and are zeroed
// afterwards.
Tensor fused_with_padding(const Tensor& query, const Tensor& key, const Tensor& value,
                          const Tensor& admissible_keys, double scale, double dropout) {
  const WithoutCudnnAttention other_kernels;
  const Tensor any = admissible_keys.any(-1, /*keepdim=*/true);  // [B,1]
  const Tensor mask = admissible_keys.logical_or(any.logical_not()).unsqueeze(1).unsqueeze(1);
  const Tensor result = at::scaled_dot_product_attention(query, key, value, mask, dropout,
                                                         /*is_causal=*/false, scale);
  return result * any.view({-1, 1, 1, 1}).to(result.scalar_type());
}

Tensor affine(const Tensor& content, const Tensor& gain, const Tensor& offset) {
  const auto type = content.scalar_type();
  const Tensor scaled = gain.defined() ? content * gain.to(type) : content;
  return offset.defined() ? scaled + offset.to(type) : scaled;
}

// One product of wider heads is the sum of both products.
Tensor widen(const Tensor& head, const Tensor& extra) {
  return at::cat({head, extra.to(head.scalar_type())
                            .expand({head.size(0), head.size(1), head.size(2), extra.size(-1)})},
                 -1);
}

// Factor on all products, [B,1,1,1], or undefined.
Tensor temperature_of(const Tensor& query, const AttentionTerms& terms,
                      const Tensor& admissible_keys) {
  if (terms.temperature == LengthTemperature::kOff) {
    return {};
  }
  const Tensor lengths = admissible_keys.defined()
                             ? admissible_keys.sum(-1).to(at::kDouble)
                             : at::full({query.size(0)}, static_cast<double>(query.size(2)),
                                        query.options().dtype(at::kDouble));
  const bool at_least_16 = terms.temperature == LengthTemperature::kAtLeast16;
  Tensor factor = lengths.clamp_min(at_least_16 ? 16.0 : 2.0).log() /
                  std::log(static_cast<double>(terms.temperature_length));
  if (terms.temperature == LengthTemperature::kAtLeastOne) {
    factor = factor.clamp_min(1.0);
  }
  return factor.to(query.scalar_type()).view({-1, 1, 1, 1});
}

// q + relative_query_offset through phase_map, turned back by each query's own angle.
Tensor phase_query(const Tensor& query, const AttentionTerms& terms) {
  Tensor content = affine(query, {}, terms.relative_query_offset);
  if (terms.phase_map.defined()) {
    content = at::matmul(content, terms.phase_map.to(query.scalar_type()));
  }
  return rotate(content, terms.phase_cos, terms.phase_sin.neg(), terms.phase_layout);
}

// All terms but rotations, relative values and phase values, put into operands of one product.
AttentionOperands operands_of(const Tensor& query, const Tensor& key, const Tensor& value,
                              const AttentionTerms& terms, const Tensor& admissible_keys) {
  const Tensor temperature = temperature_of(query, terms, admissible_keys);
  const auto tempered = [&](const Tensor& tensor) {
    return temperature.defined() ? tensor * temperature : tensor;
  };
  AttentionOperands operands;
  Tensor left = affine(query, terms.query_gain, terms.query_offset);
  operands.key = affine(key, {}, terms.key_offset);
  operands.value = affine(value, {}, terms.value_offset);
  if (terms.key_extra.defined()) {
    const Tensor extra = terms.query_extra_gain.defined()
                             ? affine(query, terms.query_extra_gain, terms.query_extra)
                             : terms.query_extra;
    left = widen(left, extra);
    operands.key = widen(operands.key, terms.key_extra);
  }
  if (terms.phase_key.defined()) {
    left = widen(left, phase_query(query, terms));
    operands.key = widen(operands.key, terms.phase_key);
  }
  operands.query = tempered(left);
  if (terms.relative_key.defined()) {
    operands.relative_query_input = tempered(affine(query, {}, terms.relative_query_offset));
    operands.relative_key = terms.relative_key.to(query.scalar_type());
  }
  if (terms.relative_query.defined()) {
    operands.relative_key_input = tempered(key);
    operands.relative_query = terms.relative_query.to(query.scalar_type());
  }
  if (terms.relative_value.defined()) {
    operands.relative_value = terms.relative_value.to(value.scalar_type());
  }
  operands.bias = terms.bias;
  operands.bias_blocks = terms.bias_blocks;
  operands.admissible_keys = admissible_keys;
  return operands;
}

Tensor on_path(AttentionPath path, const AttentionOperands& in, double scale, double dropout) {
  switch (path) {
    case AttentionPath::kFused:
      return at::scaled_dot_product_attention(in.query, in.key, in.value, {}, dropout,
                                              /*is_causal=*/false, scale);
    case AttentionPath::kFusedBias:
      return fused_with_bias(in.query, in.key, in.value, in.bias, scale, dropout);
    case AttentionPath::kFusedPadding:
      return fused_with_padding(in.query, in.key, in.value, in.admissible_keys, scale, dropout);
    default:
      return biased_attention(in, scale, dropout);
  }
}

// Real and imaginary parts of values ride on the same probabilities.
Tensor modulus_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                         const AttentionTerms& terms, const Tensor& admissible_keys,
                         double dropout_probability) {
  Tensor scores = attention_scores(query, key, terms, admissible_keys);
  if (admissible_keys.defined()) {
    const Tensor any = admissible_keys.any(-1, /*keepdim=*/true);
    const Tensor blocked = admissible_keys.logical_not().logical_and(any);
    scores = scores.masked_fill(blocked.unsqueeze(1).unsqueeze(1),
                                -std::numeric_limits<double>::infinity());
    const Tensor result = at::matmul(
        dropout(at::softmax(scores, -1), dropout_probability).to(value.scalar_type()), value);
    return result * any.view({-1, 1, 1, 1}).to(result.scalar_type());
  }
  return at::matmul(dropout(at::softmax(scores, -1), dropout_probability).to(value.scalar_type()),
                    value);
}

// scale |q k^T| for [re|im] features. The root's derivative at 0 is kept finite.
Tensor modulus_scores(const Tensor& query, const Tensor& key, double scale) {
  constexpr double kInsideRoot = 1e-12;
  const auto wide = at::promote_types(query.scalar_type(), at::kFloat);
  const auto halves = query.to(wide).chunk(2, -1);
  const Tensor right = key.to(wide).transpose(-1, -2);
  const auto key_halves = key.to(wide).chunk(2, -1);
  const Tensor swapped = at::cat({key_halves[1], key_halves[0]}, -1).transpose(-1, -2);
  const Tensor real = at::matmul(at::cat({halves[0], halves[1].neg()}, -1), right);
  const Tensor imaginary = at::matmul(query.to(wide), swapped);
  return (real.square() + imaginary.square() + kInsideRoot).sqrt() * scale;
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
    return modulus_attention(query, key, value, terms, admissible_keys, dropout);
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
    const Tensor temperature = temperature_of(query_in, terms, admissible_keys);
    const Tensor scores = modulus_scores(query_in, key_in, terms.scale);
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
