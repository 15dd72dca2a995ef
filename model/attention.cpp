#include "model/attention.h"

#include <ATen/Context.h>

#include <optional>

#include "model/biased_attention.h"

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

// LibTorch's fused kernels, for devices that have them. Not with a bias and a padding mask
// together, which they want as one [B,N,T,T] tensor. The answer must be the same when a segment is
// computed again, so it may not depend on what requires a gradient.
bool fused_kernel_is_exact(const Tensor& query, const Tensor& bias, const Tensor& admissible_keys) {
  return !query.is_cpu() && !(bias.defined() && admissible_keys.defined());
}

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

Tensor fused_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                       const Tensor& bias, const Tensor& admissible_keys, double scale,
                       double dropout) {
  if (bias.defined()) {
    return fused_with_bias(query, key, value, bias, scale, dropout);
  }
  if (admissible_keys.defined()) {
    return fused_with_padding(query, key, value, admissible_keys, scale, dropout);
  }
  return at::scaled_dot_product_attention(query, key, value, {}, dropout, /*is_causal=*/false,
                                          scale);
}

Tensor affine(const Tensor& content, const Tensor& gain, const Tensor& offset) {
  const auto type = content.scalar_type();
  const Tensor scaled = gain.defined() ? content * gain.to(type) : content;
  return offset.defined() ? scaled + offset.to(type) : scaled;
}

// (query_extra_gain q + query_extra), [B,N,T,E].
Tensor extra_query(const Tensor& query, const AttentionTerms& terms) {
  if (terms.query_extra_gain.defined()) {
    return affine(query, terms.query_extra_gain, terms.query_extra);
  }
  const auto& extra = terms.query_extra;
  return extra.to(query.scalar_type())
      .expand({query.size(0), extra.size(0), extra.size(1), extra.size(2)});
}

// One product of wider heads is the sum of both products.
Tensor widen(const Tensor& head, const Tensor& extra) {
  return at::cat({head, extra.expand({head.size(0), head.size(1), head.size(2), extra.size(-1)})},
                 -1);
}

}  // namespace

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const AttentionTerms& terms, const Tensor& admissible_keys, double dropout) {
  Tensor effective_query = affine(query, terms.query_gain, terms.query_offset);
  Tensor effective_key = affine(key, {}, terms.key_offset);
  if (terms.key_extra.defined()) {
    effective_query = widen(effective_query, extra_query(query, terms));
    effective_key = widen(effective_key, terms.key_extra.to(key.scalar_type()));
  }
  if (fused_kernel_is_exact(query, terms.bias, admissible_keys)) {
    return fused_attention(effective_query, effective_key, value, terms.bias, admissible_keys,
                           terms.scale, dropout);
  }
  return biased_attention(effective_query, effective_key, value, terms.bias, admissible_keys,
                          terms.scale, dropout);
}

}  // namespace tupelo
