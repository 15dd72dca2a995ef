#include "tests/emulated_gpu/own_kernels.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

namespace emulated_gpu {
namespace {

using at::Tensor;
using torch::jit::Stack;

// Of scaled dot-product attention, query, key and value [B,N,T,D].
struct Attention {
  Tensor query, key, value, bias;
  double dropout;
  double scale;
  std::uint64_t seed;

  // Sums are float32, as in the fused kernels.
  static Tensor wide(const Tensor& tensor) {
    return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat);
  }
  Tensor scores() const {
    Tensor result = at::matmul(wide(query), wide(key).transpose(-2, -1)) * scale;
    if (!bias.defined()) return result;
    return bias.scalar_type() == at::kBool
               ? result.masked_fill(bias.logical_not(), -std::numeric_limits<double>::infinity())
               : result + wide(bias);
  }
  Tensor kept(const Tensor& like) const {
    if (dropout == 0.0) return at::ones_like(like);
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    return at::bernoulli(at::full_like(like, 1.0 - dropout), generator) / (1.0 - dropout);
  }
  std::tuple<Tensor, Tensor> forward() const {
    const Tensor all = scores();
    const Tensor probabilities = at::softmax(all, -1);
    const Tensor result = at::matmul(probabilities * kept(probabilities), wide(value));
    // As the kernels do, heads next to each other: [B,T,N,D] in memory.
    return {result.to(query.scalar_type()).transpose(1, 2).contiguous().transpose(1, 2),
            at::logsumexp(all, -1)};
  }
  // Of query, key, value and scores.
  std::tuple<Tensor, Tensor, Tensor, Tensor> backward(const Tensor& gradient) const {
    const Tensor probabilities = at::softmax(scores(), -1);
    const Tensor keep = kept(probabilities);
    const Tensor wide_gradient = wide(gradient);
    const Tensor of_value = at::matmul((probabilities * keep).transpose(-2, -1), wide_gradient);
    const Tensor of_probabilities = at::matmul(wide_gradient, wide(value).transpose(-2, -1)) * keep;
    const Tensor of_scores =
        probabilities * (of_probabilities - (of_probabilities * probabilities).sum(-1, true));
    return {(at::matmul(of_scores, wide(key)) * scale).to(query.scalar_type()),
            (at::matmul(of_scores.transpose(-2, -1), wide(query)) * scale).to(key.scalar_type()),
            of_value.to(value.scalar_type()), of_scores};
  }
};

Tensor tensor_or_none(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor() : Tensor();
}

double scale_or_usual(const c10::IValue& value, const Tensor& query) {
  return value.isNone() ? 1.0 / std::sqrt(static_cast<double>(query.size(-1))) : value.toDouble();
}

Tensor seed_tensor(std::uint64_t seed) {
  return at::scalar_tensor(static_cast<std::int64_t>(seed), at::kLong);
}

std::uint64_t seed_in(const Tensor& tensor) {
  return tensor.defined() && tensor.numel() > 0
             ? static_cast<std::uint64_t>(tensor.item<std::int64_t>())
             : 0;
}

void efficient_forward(Stack& stack, std::uint64_t seed) {
  const Stack in = torch::jit::pop(stack, 8);
  const Tensor query = in[0].toTensor();
  const Attention attention{query,
                            in[1].toTensor(),
                            in[2].toTensor(),
                            tensor_or_none(in[3]),
                            in[5].toDouble(),
                            scale_or_usual(in[7], query),
                            seed};
  const auto [output, log_sum] = attention.forward();
  torch::jit::push(stack, output, log_sum, seed_tensor(seed), seed_tensor(0));
}

void efficient_backward(Stack& stack, std::uint64_t) {
  const Stack in = torch::jit::pop(stack, 13);
  const Tensor query = in[1].toTensor(), bias = tensor_or_none(in[4]);
  const Attention attention{query,
                            in[2].toTensor(),
                            in[3].toTensor(),
                            bias,
                            in[9].toDouble(),
                            scale_or_usual(in[12], query),
                            seed_in(tensor_or_none(in[7]))};
  auto [of_query, of_key, of_value, of_scores] = attention.backward(in[0].toTensor());
  const bool wants_bias = in[10].toBoolList().get(3);
  const Tensor of_bias = wants_bias && bias.defined()
                             ? of_scores.to(bias.scalar_type()).expand_as(bias).contiguous()
                             : Tensor();
  torch::jit::push(stack, of_query, of_key, of_value, of_bias);
}

void flash_forward(Stack& stack, std::uint64_t seed) {
  const Stack in = torch::jit::pop(stack, 7);
  const Tensor query = in[0].toTensor(), key = in[1].toTensor();
  const Attention attention{
      query, key, in[2].toTensor(), {}, in[3].toDouble(), scale_or_usual(in[6], query), seed};
  const auto [output, log_sum] = attention.forward();
  torch::jit::push(stack, output, log_sum, Tensor(), Tensor(), query.size(2), key.size(2),
                   seed_tensor(seed), seed_tensor(0), Tensor());
}

void flash_backward(Stack& stack, std::uint64_t) {
  const Stack in = torch::jit::pop(stack, 15);
  const Tensor query = in[1].toTensor();
  const Attention attention{query,
                            in[2].toTensor(),
                            in[3].toTensor(),
                            {},
                            in[10].toDouble(),
                            scale_or_usual(in[14], query),
                            seed_in(tensor_or_none(in[12]))};
  auto [of_query, of_key, of_value, of_scores] = attention.backward(in[0].toTensor());
  torch::jit::push(stack, of_query, of_key, of_value);
}

void cudnn_forward(Stack& stack, std::uint64_t seed) {
  const Stack in = torch::jit::pop(stack, 9);
  const Tensor query = in[0].toTensor(), key = in[1].toTensor();
  const Attention attention{query,
                            key,
                            in[2].toTensor(),
                            tensor_or_none(in[3]),
                            in[5].toDouble(),
                            scale_or_usual(in[8], query),
                            seed};
  const auto [output, log_sum] = attention.forward();
  torch::jit::push(stack, output, log_sum, Tensor(), Tensor(), query.size(2), key.size(2),
                   seed_tensor(seed), seed_tensor(0), Tensor());
}

void cudnn_backward(Stack& stack, std::uint64_t) {
  const Stack in = torch::jit::pop(stack, 16);
  const Tensor query = in[1].toTensor();
  const Attention attention{query,
                            in[2].toTensor(),
                            in[3].toTensor(),
                            tensor_or_none(in[8]),
                            in[13].toDouble(),
                            scale_or_usual(in[15], query),
                            seed_in(tensor_or_none(in[6]))};
  auto [of_query, of_key, of_value, of_scores] = attention.backward(in[0].toTensor());
  torch::jit::push(stack, of_query, of_key, of_value);
}

void dropout(Stack& stack, std::uint64_t seed) {
  const Stack in = torch::jit::pop(stack, 3);
  const Tensor input = in[0].toTensor();
  const double probability = in[1].toDouble();
  const bool drops = in[2].isNone() || in[2].toBool();
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto mask_options = input.options().dtype(at::kBool);
  const Tensor kept =
      drops ? at::empty(input.sizes(), mask_options).bernoulli_(1.0 - probability, generator)
            : at::ones(input.sizes(), mask_options);
  torch::jit::push(stack, at::mul(input, kept).mul_(drops ? 1.0 / (1.0 - probability) : 1.0), kept);
}

void cudnn_convolution(Stack& stack, std::uint64_t) {
  const Stack in = torch::jit::pop(stack, 9);
  torch::jit::push(
      stack,
      at::convolution(in[0].toTensor(), in[1].toTensor(), {}, in[3].toIntVector(),
                      in[2].toIntVector(), in[4].toIntVector(), /*transposed=*/false,
                      std::vector<std::int64_t>(in[2].toIntVector().size(), 0), in[5].toInt()));
}

}  // namespace

const OwnKernel* own_kernel(const std::string& name) {
  static const auto& kernels = *new std::map<std::string, OwnKernel>{
      {"aten::_scaled_dot_product_efficient_attention", efficient_forward},
      {"aten::_scaled_dot_product_efficient_attention_backward", efficient_backward},
      {"aten::native_dropout", dropout},
      {"aten::cudnn_convolution", cudnn_convolution},
      {"aten::_scaled_dot_product_cudnn_attention", cudnn_forward},
      {"aten::_scaled_dot_product_cudnn_attention_backward", cudnn_backward},
      {"aten::_scaled_dot_product_flash_attention", flash_forward},
      {"aten::_scaled_dot_product_flash_attention_backward", flash_backward},
  };
  const auto found = kernels.find(name);
  return found == kernels.end() ? nullptr : &found->second;
}

}  // namespace emulated_gpu
