#include "model/attention.h"

#include <ATen/ops/_softmax_backward_data.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>
#include <optional>

#include "model/dropout.h"

namespace tupelo {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool is_half(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

// [B,N,T,X] as the [B*N,T,X] that bmm wants.
Tensor fold_heads(const Tensor& tensor) { return tensor.flatten(0, 1); }

Tensor biased_scores(const Tensor& query, const Tensor& key, double scale,
                     const std::optional<Tensor>& bias) {
  const auto batch = query.size(0), heads = query.size(1), tokens = query.size(2);
  const Tensor folded_query = fold_heads(query);
  const Tensor folded_key = fold_heads(key).transpose(1, 2);
  if (is_half(query.scalar_type())) {
    Tensor scores = at::bmm(folded_query, folded_key).to(at::kFloat).mul_(scale);
    scores = scores.view({batch, heads, tokens, tokens});
    return bias ? scores.add_(*bias) : scores;
  }
  Tensor scores = at::empty({batch, heads, tokens, tokens}, query.options());
  if (bias) {
    scores.copy_(*bias);
  }
  scores.view({batch * heads, tokens, tokens})
      .baddbmm_(folded_query, folded_key, /*beta=*/bias ? 1.0 : 0.0, /*alpha=*/scale);
  return scores;
}

// Softmax over the admissible keys, zero for a sample that has none.
Tensor probabilities_of(Tensor scores, const std::optional<Tensor>& admissible_keys) {
  if (!admissible_keys) {
    return at::softmax(scores, -1);
  }
  const Tensor blocked = admissible_keys->logical_not().unsqueeze(1).unsqueeze(1);  // [B,1,1,T]
  scores.masked_fill_(blocked, -std::numeric_limits<double>::infinity());
  Tensor probabilities = at::softmax(scores, -1);
  return probabilities.masked_fill_(blocked.all(-1, /*keepdim=*/true), 0.0);
}

// softmax(scale q k^T + bias) v, keeping the probabilities and nothing else of size T x T for
// backward. The batch sum of the bias' gradient happens here, so that autograd never sees an
// expanded bias.
class BiasedAttention : public torch::autograd::Function<BiasedAttention> {
 public:
  // `bias` [N,T,T] and `admissible_keys` [B,T] may be absent.
  static Tensor forward(AutogradContext* context, const Tensor& query_in, const Tensor& key_in,
                        const Tensor& value_in, const std::optional<Tensor>& bias,
                        const std::optional<Tensor>& admissible_keys, double scale,
                        double dropout_probability) {
    const Tensor query = query_in.contiguous();
    const Tensor key = key_in.contiguous();
    const Tensor value = value_in.contiguous();
    const Tensor probabilities =
        probabilities_of(biased_scores(query, key, scale, bias), admissible_keys);
    const DropoutMask mask =
        dropout_probability > 0.0 ? DropoutMask::draw(dropout_probability) : DropoutMask{};
    const Tensor kept = dropped(probabilities, mask).to(value.scalar_type());
    context->save_for_backward({query, key, value, probabilities});
    context->saved_data["scale"] = scale;
    context->saved_data["seed"] = static_cast<std::int64_t>(mask.seed);
    context->saved_data["probability"] = mask.probability;
    if (bias) {
      context->saved_data["bias_type"] = static_cast<std::int64_t>(bias->scalar_type());
    }
    return at::bmm(fold_heads(kept), fold_heads(value)).view(value.sizes());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &query = saved[0], &key = saved[1], &value = saved[2], &probabilities = saved[3];
    const DropoutMask mask{static_cast<std::uint64_t>(context->saved_data["seed"].toInt()),
                           context->saved_data["probability"].toDouble()};
    const double scale = context->saved_data["scale"].toDouble();
    const Tensor gradient = fold_heads(gradients[0].contiguous());

    const Tensor kept = dropped(probabilities, mask).to(value.scalar_type());
    const Tensor value_gradient = at::bmm(fold_heads(kept).transpose(1, 2), gradient);
    Tensor probability_gradient = at::bmm(gradient, fold_heads(value).transpose(1, 2))
                                      .view(probabilities.sizes())
                                      .to(probabilities.scalar_type());
    if (mask.probability > 0.0) {
      mask.apply(probability_gradient, probability_gradient);
    }
    const Tensor score_gradient = at::_softmax_backward_data(probability_gradient, probabilities,
                                                             -1, probabilities.scalar_type());
    const Tensor product_gradient = fold_heads(score_gradient).to(query.scalar_type());
    const auto scaled_product = [scale](const Tensor& left, const Tensor& right) {
      return at::bmm(left, right).mul_(scale);
    };
    return {scaled_product(product_gradient, fold_heads(key)).view(query.sizes()),
            scaled_product(product_gradient.transpose(1, 2), fold_heads(query)).view(key.sizes()),
            value_gradient.view(value.sizes()),
            bias_gradient(context, score_gradient),
            Tensor(),
            Tensor(),
            Tensor()};
  }

 private:
  static Tensor dropped(const Tensor& probabilities, const DropoutMask& mask) {
    if (mask.probability == 0.0) {
      return probabilities;
    }
    Tensor kept = at::empty_like(probabilities);
    mask.apply(probabilities, kept);
    return kept;
  }

  static Tensor bias_gradient(AutogradContext* context, const Tensor& score_gradient) {
    const auto type = context->saved_data.find("bias_type");
    // The bias is the fourth differentiable input, when there is one.
    if (type == context->saved_data.end() || !context->needs_input_grad(3)) {
      return {};
    }
    return score_gradient.sum(0).to(static_cast<at::ScalarType>(type->second.toInt()));
  }
};

// LibTorch's fused kernels, for devices that have them. False where they would be wrong or
// wasteful: with a bias and a padding mask together they need both as one [B,N,T,T] tensor, and a
// bias that alone requires a gradient crashes the memory-efficient backward (pytorch issue 148476).
bool fused_kernel_is_exact(const Tensor& query, const Tensor& bias, const Tensor& admissible_keys) {
  if (query.is_cpu()) {
    return false;
  }
  return !bias.defined() || (!admissible_keys.defined() && query.requires_grad());
}

Tensor fused_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                       const Tensor& bias, const Tensor& admissible_keys, double scale,
                       double dropout) {
  std::optional<Tensor> mask;
  if (bias.defined()) {
    // Some kernels read a float32 mask as if it had the query's type (pytorch pull request 191612).
    mask = bias.to(query.scalar_type()).unsqueeze(0);
  }
  if (!admissible_keys.defined()) {
    return at::scaled_dot_product_attention(query, key, value, mask, dropout, false, scale);
  }
  // Kernels disagree about rows without a key, so such samples see all keys and are zeroed
  // afterwards.
  const Tensor any = admissible_keys.any(-1, /*keepdim=*/true);  // [B,1]
  mask = admissible_keys.logical_or(any.logical_not()).unsqueeze(1).unsqueeze(1);
  const Tensor result =
      at::scaled_dot_product_attention(query, key, value, mask, dropout, false, scale);
  return result * any.view({-1, 1, 1, 1}).to(result.scalar_type());
}

std::optional<Tensor> if_defined(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Tensor>(tensor) : std::nullopt;
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
  return BiasedAttention::apply(effective_query, effective_key, value, if_defined(terms.bias),
                                if_defined(admissible_keys), terms.scale, dropout);
}

}  // namespace tupelo
