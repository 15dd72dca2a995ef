#include "model/fused_attention.h"

#include <ATen/Context.h>

#include <algorithm>
#include <vector>

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

}  // namespace

Tensor fused_attention(const AttentionOperands& operands, double scale, double dropout) {
  return at::scaled_dot_product_attention(operands.query, operands.key, operands.value, {}, dropout,
                                          /*is_causal=*/false, scale);
}

Tensor fused_attention_with_bias(const AttentionOperands& operands, double scale, double dropout,
                                 std::int64_t block_elements) {
  const WithoutCudnnAttention other_kernels;
  // Some kernels read a float32 mask as if it had the query's type (pytorch pull request 191612).
  const Tensor mask = operands.bias.to(operands.query.scalar_type()).unsqueeze(0);
  const Tensor query = with_some_gradient(operands.query, operands.bias);
  const std::int64_t batch = query.size(0);
  const std::int64_t step = std::max<std::int64_t>(1, block_elements / mask.numel());
  std::vector<Tensor> results;
  for (std::int64_t first = 0; first < batch; first += step) {
    const auto block = [&](const Tensor& heads) {
      return heads.narrow(0, first, std::min(step, batch - first));
    };
    results.push_back(at::scaled_dot_product_attention(block(query), block(operands.key),
                                                       block(operands.value), mask, dropout,
                                                       /*is_causal=*/false, scale));
  }
  return results.size() == 1 ? results.front() : at::cat(results, 0);
}

// Kernels disagree about rows without a key, so samples without any see all keys and are zeroed
// afterwards.
Tensor fused_attention_with_padding(const AttentionOperands& operands, double scale,
                                    double dropout) {
  const WithoutCudnnAttention other_kernels;
  const Tensor& admissible_keys = operands.admissible_keys;
  const Tensor any = admissible_keys.any(-1, /*keepdim=*/true);  // [B,1]
  const Tensor mask = admissible_keys.logical_or(any.logical_not()).unsqueeze(1).unsqueeze(1);
  const Tensor result = at::scaled_dot_product_attention(
      operands.query, operands.key, operands.value, mask, dropout, /*is_causal=*/false, scale);
  return result * any.view({-1, 1, 1, 1}).to(result.scalar_type());
}

}  // namespace tupelo
