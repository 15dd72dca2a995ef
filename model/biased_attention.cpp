#include "model/biased_attention.h"

#include <ATen/ops/_softmax_backward_data.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include "model/dropout.h"
#include "model/relative_scores.h"

namespace tupelo {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool is_half(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

// [B,N,T,X] as the [B*N,T,X] that bmm wants.
Tensor fold_heads(const Tensor& tensor) { return tensor.flatten(0, 1); }

Tensor biased_scores(const Tensor& query, const Tensor& key, double scale, const Tensor& bias) {
  const auto batch = query.size(0), heads = query.size(1), tokens = query.size(2);
  const Tensor folded_query = fold_heads(query);
  const Tensor folded_key = fold_heads(key).transpose(1, 2);
  if (is_half(query.scalar_type())) {
    Tensor scores = at::bmm(folded_query, folded_key).to(at::kFloat).mul_(scale);
    scores = scores.view({batch, heads, tokens, tokens});
    return bias.defined() ? scores.add_(bias) : scores;
  }
  Tensor scores = at::empty({batch, heads, tokens, tokens}, query.options());
  if (bias.defined()) {
    scores.copy_(bias);
  }
  scores.view({batch * heads, tokens, tokens})
      .baddbmm_(folded_query, folded_key, /*beta=*/bias.defined() ? 1.0 : 0.0, /*alpha=*/scale);
  return scores;
}

// Softmax over the admissible keys, zero for a query that has none.
Tensor probabilities_of(Tensor scores, const Tensor& admissible_keys, bool bias_blocks) {
  if (admissible_keys.defined()) {
    const Tensor blocked = admissible_keys.logical_not().unsqueeze(1).unsqueeze(1);  // [B,1,1,T]
    scores.masked_fill_(blocked, -std::numeric_limits<double>::infinity());
  }
  Tensor without_key;  // [B,1,1,1] or [B,N,T,1]
  if (bias_blocks) {
    without_key = scores.amax(-1, /*keepdim=*/true).eq(-std::numeric_limits<double>::infinity());
  } else if (admissible_keys.defined()) {
    without_key = admissible_keys.any(-1).logical_not().view({-1, 1, 1, 1});
  }
  Tensor probabilities = at::softmax(scores, -1);
  return without_key.defined() ? probabilities.masked_fill_(without_key, 0.0) : probabilities;
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

// The operands as a list of those that are defined, and back.
using Operand = Tensor AttentionOperands::*;
constexpr Operand kOperands[] = {
    &AttentionOperands::query,
    &AttentionOperands::key,
    &AttentionOperands::value,
    &AttentionOperands::bias,
    &AttentionOperands::relative_query_input,
    &AttentionOperands::relative_key,
    &AttentionOperands::relative_key_input,
    &AttentionOperands::relative_query,
    &AttentionOperands::relative_value,
    &AttentionOperands::admissible_keys,
};

// Bit n is set when operand n is defined.
std::int64_t defined_operands(const AttentionOperands& operands) {
  std::int64_t present = 0;
  for (std::size_t i = 0; i < std::size(kOperands); ++i) {
    present |= static_cast<std::int64_t>((operands.*kOperands[i]).defined()) << i;
  }
  return present;
}

variable_list listed(const AttentionOperands& operands, std::int64_t present) {
  variable_list list;
  for (std::size_t i = 0; i < std::size(kOperands); ++i) {
    if ((present >> i & 1) != 0) {
      list.push_back(operands.*kOperands[i]);
    }
  }
  return list;
}

AttentionOperands unlisted(at::TensorList list, std::int64_t present) {
  AttentionOperands operands;
  std::size_t next = 0;
  for (std::size_t i = 0; i < std::size(kOperands); ++i) {
    if ((present >> i & 1) != 0) {
      operands.*kOperands[i] = list[next++];
    }
  }
  return operands;
}

// What a query at i sees of a table of distances, a key at j sees of the flipped table: its own
// distance to i is -r.
Tensor seen_from_key(const Tensor& table) { return table.flip(1); }

Tensor scores_of(const AttentionOperands& in, double scale) {
  Tensor scores = biased_scores(in.query, in.key, scale, in.bias);
  if (in.relative_key.defined()) {
    add_relative_scores(scores, in.relative_query_input, in.relative_key, scale);
  }
  if (in.relative_query.defined()) {
    add_relative_scores(scores.transpose(2, 3), in.relative_key_input,
                        seen_from_key(in.relative_query), scale);
  }
  return scores;
}

// Keeps the probabilities and nothing else of size T x T for backward. The batch sums of the
// gradients of bias and tables happen here, so that autograd never sees them expanded.
class BiasedAttention : public torch::autograd::Function<BiasedAttention> {
 public:
  // `tensors`: those of `present`, in the order of kOperands.
  static Tensor forward(AutogradContext* context, at::TensorList tensors, std::int64_t present,
                        bool bias_blocks, double scale, double dropout_probability) {
    AttentionOperands in = unlisted(tensors, present);
    for (const Operand member :
         {&AttentionOperands::query, &AttentionOperands::key, &AttentionOperands::value}) {
      in.*member = (in.*member).contiguous();
    }
    const Tensor probabilities =
        probabilities_of(scores_of(in, scale), in.admissible_keys, bias_blocks);
    const auto dropped = RepeatableDropout::draw(probabilities, dropout_probability);
    const Tensor kept = dropped(probabilities).to(in.value.scalar_type());

    variable_list saved = listed(in, present);
    saved.push_back(probabilities);
    saved.push_back(dropped.keep());
    context->save_for_backward(saved);
    auto& data = context->saved_data;
    data["present"] = present;
    data["scale"] = scale;
    data["seed"] = static_cast<std::int64_t>(dropped.mask().seed);
    data["probability"] = dropped.mask().probability;

    Tensor result = at::bmm(fold_heads(kept), fold_heads(in.value)).view(in.value.sizes());
    if (in.relative_value.defined()) {
      result.add_(relative_mixture(kept, in.relative_value));
    }
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    auto& data = context->saved_data;
    const std::int64_t present = data["present"].toInt();
    const AttentionOperands in = unlisted(saved, present);
    const Tensor& probabilities = saved[saved.size() - 2];
    const RepeatableDropout dropped(
        {static_cast<std::uint64_t>(data["seed"].toInt()), data["probability"].toDouble()},
        saved.back());
    AttentionOperands gradient;
    const Tensor score_gradient =
        through_values(in, probabilities, dropped, gradients[0].contiguous(), gradient);
    // The bias is tensor 3, when there is one.
    const bool wants_bias = in.bias.defined() && context->needs_input_grad(3);
    through_scores(in, score_gradient, data["scale"].toDouble(), wants_bias, gradient);
    variable_list result = listed(gradient, present);  // an undefined one stays undefined
    result.resize(result.size() + 4);                  // present, bias_blocks, scale, dropout
    return result;
  }

 private:
  // Gradients of the values; returns that of the scores, [B,N,T,T].
  static Tensor through_values(const AttentionOperands& in, const Tensor& probabilities,
                               const RepeatableDropout& dropped, const Tensor& output_gradient,
                               AttentionOperands& gradient) {
    const Tensor kept = dropped(probabilities).to(in.value.scalar_type());
    const Tensor folded = fold_heads(output_gradient);
    gradient.value = at::bmm(fold_heads(kept).transpose(1, 2), folded).view(in.value.sizes());
    Tensor probability_gradient = at::bmm(folded, fold_heads(in.value).transpose(1, 2))
                                      .view(probabilities.sizes())
                                      .to(probabilities.scalar_type());
    if (in.relative_value.defined()) {
      gradient.relative_value = relative_table_gradient(kept, output_gradient, in.relative_value);
      add_relative_scores(probability_gradient, output_gradient, in.relative_value, 1.0);
    }
    dropped.in_place(probability_gradient);
    return at::_softmax_backward_data(probability_gradient, probabilities, -1,
                                      probabilities.scalar_type());
  }

  static void through_scores(const AttentionOperands& in, const Tensor& score_gradient,
                             double scale, bool wants_bias, AttentionOperands& gradient) {
    const Tensor product_gradient = fold_heads(score_gradient).to(in.query.scalar_type());
    gradient.query =
        at::bmm(product_gradient, fold_heads(in.key)).mul_(scale).view(in.query.sizes());
    gradient.key = at::bmm(product_gradient.transpose(1, 2), fold_heads(in.query))
                       .mul_(scale)
                       .view(in.key.sizes());
    if (wants_bias) {
      gradient.bias = score_gradient.sum(0).to(in.bias.scalar_type());
    }
    if (in.relative_key.defined()) {
      gradient.relative_query_input = relative_mixture(score_gradient, in.relative_key).mul_(scale);
      gradient.relative_key =
          relative_table_gradient(score_gradient, in.relative_query_input, in.relative_key)
              .mul_(scale);
    }
    if (in.relative_query.defined()) {
      const Tensor turned = score_gradient.transpose(2, 3);
      const Tensor table = seen_from_key(in.relative_query);
      gradient.relative_key_input = relative_mixture(turned, table).mul_(scale);
      gradient.relative_query =
          seen_from_key(relative_table_gradient(turned, in.relative_key_input, table).mul_(scale));
    }
  }
};

}  // namespace

Tensor biased_attention(const AttentionOperands& operands, double scale, double dropout) {
  const std::int64_t present = defined_operands(operands);
  return BiasedAttention::apply(at::TensorList(listed(operands, present)), present,
                                operands.bias_blocks, scale, dropout);
}

}  // namespace tupelo
