#include "model/biased_attention.h"

#include <ATen/ops/_softmax_backward_data.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <optional>
#include <utility>

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

// Dropout that backward can repeat: a seed on the CPU, a stored mask elsewhere.
class RepeatableDropout {
 public:
  RepeatableDropout(DropoutMask mask, Tensor keep) : mask_(mask), keep_(std::move(keep)) {}

  static RepeatableDropout draw(const Tensor& like, double probability) {
    if (probability == 0.0) {
      return {{}, {}};
    }
    if (like.is_cpu()) {
      return {DropoutMask::draw(probability), {}};
    }
    return {{0, probability},
            at::empty(like.sizes(), like.options().dtype(at::kBool)).bernoulli_(1.0 - probability)};
  }

  Tensor operator()(const Tensor& tensor) const {
    if (mask_.probability == 0.0) {
      return tensor;
    }
    Tensor result = at::empty_like(tensor);
    write(tensor, result);
    return result;
  }

  void in_place(Tensor& tensor) const {
    if (mask_.probability > 0.0) {
      write(tensor, tensor);
    }
  }

  const DropoutMask& mask() const { return mask_; }
  const Tensor& keep() const { return keep_; }

 private:
  void write(const Tensor& tensor, Tensor& result) const {
    if (keep_.defined()) {
      at::mul_out(result, tensor, keep_).mul_(1.0 / (1.0 - mask_.probability));
    } else {
      mask_.apply(tensor, result);
    }
  }

  DropoutMask mask_;
  Tensor keep_;  // bool, undefined on the CPU
};

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
    const auto dropped = RepeatableDropout::draw(probabilities, dropout_probability);
    const Tensor kept = dropped(probabilities).to(value.scalar_type());
    context->save_for_backward({query, key, value, probabilities, dropped.keep()});
    auto& saved = context->saved_data;
    saved["scale"] = scale;
    saved["seed"] = static_cast<std::int64_t>(dropped.mask().seed);
    saved["probability"] = dropped.mask().probability;
    if (bias) {
      saved["bias_type"] = static_cast<std::int64_t>(bias->scalar_type());
    }
    return at::bmm(fold_heads(kept), fold_heads(value)).view(value.sizes());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &query = saved[0], &key = saved[1], &value = saved[2], &probabilities = saved[3];
    const RepeatableDropout dropped(
        {static_cast<std::uint64_t>(context->saved_data["seed"].toInt()),
         context->saved_data["probability"].toDouble()},
        saved[4]);
    const Tensor gradient = fold_heads(gradients[0].contiguous());

    const Tensor kept = dropped(probabilities).to(value.scalar_type());
    const Tensor value_gradient = at::bmm(fold_heads(kept).transpose(1, 2), gradient);
    Tensor probability_gradient = at::bmm(gradient, fold_heads(value).transpose(1, 2))
                                      .view(probabilities.sizes())
                                      .to(probabilities.scalar_type());
    dropped.in_place(probability_gradient);
    const Tensor score_gradient = at::_softmax_backward_data(probability_gradient, probabilities,
                                                             -1, probabilities.scalar_type());
    const Tensor product_gradient = fold_heads(score_gradient).to(query.scalar_type());
    const double scale = context->saved_data["scale"].toDouble();
    const Tensor query_gradient = at::bmm(product_gradient, fold_heads(key)).mul_(scale);
    const Tensor key_gradient =
        at::bmm(product_gradient.transpose(1, 2), fold_heads(query)).mul_(scale);
    return {query_gradient.view(query.sizes()),
            key_gradient.view(key.sizes()),
            value_gradient.view(value.sizes()),
            bias_gradient(context, score_gradient),
            Tensor(),
            Tensor(),
            Tensor()};
  }

 private:
  static Tensor bias_gradient(AutogradContext* context, const Tensor& score_gradient) {
    const auto type = context->saved_data.find("bias_type");
    // The bias is the fourth differentiable input, when there is one.
    if (type == context->saved_data.end() || !context->needs_input_grad(3)) {
      return {};
    }
    return score_gradient.sum(0).to(static_cast<at::ScalarType>(type->second.toInt()));
  }
};

std::optional<Tensor> if_defined(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Tensor>(tensor) : std::nullopt;
}

}  // namespace

Tensor biased_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                        const Tensor& bias, const Tensor& admissible_keys, double scale,
                        double dropout) {
  return BiasedAttention::apply(query, key, value, if_defined(bias), if_defined(admissible_keys),
                                scale, dropout);
}

}  // namespace tupelo
