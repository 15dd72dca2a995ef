#include "tests/emulated_gpu/own_kernels.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

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

Tensor seed_tensor(std::uint64_t seed) {
  return at::scalar_tensor(static_cast<std::int64_t>(seed), at::kLong);
}

// Where an operator has its arguments; key and value follow the query.
struct Places {
  static constexpr std::size_t kNone = 99;

  std::size_t count;
  std::size_t query;
  std::size_t bias;
  std::size_t dropout;
  std::size_t causal;
  std::size_t scale;
  std::size_t seed;  // of backward: what forward gave

  Attention attention(const Stack& in, std::uint64_t drawn) const {
    TORCH_CHECK(!in[causal].toBool(), "emulated GPU: causal attention");
    Attention found{in[query].toTensor(),
                    in[query + 1].toTensor(),
                    in[query + 2].toTensor(),
                    bias == kNone ? Tensor() : tensor_or_none(in[bias]),
                    in[dropout].toDouble(),
                    0.0,
                    drawn};
    found.scale = in[scale].isNone() ? 1.0 / std::sqrt(static_cast<double>(found.query.size(-1)))
                                     : in[scale].toDouble();
    if (seed != kNone && found.dropout > 0.0) {
      found.seed = static_cast<std::uint64_t>(in[seed].toTensor().item<std::int64_t>());
    }
    return found;
  }
};

constexpr Places kEfficient{8, 0, 3, 5, 6, 7, Places::kNone};
constexpr Places kEfficientBackward{13, 1, 4, 9, 11, 12, 7};
constexpr Places kFlash{7, 0, Places::kNone, 3, 4, 6, Places::kNone};
constexpr Places kFlashBackward{15, 1, Places::kNone, 10, 11, 14, 12};
constexpr Places kCudnn{9, 0, 3, 5, 6, 8, Places::kNone};
constexpr Places kCudnnBackward{16, 1, 8, 13, 14, 15, 6};

void efficient_forward(Stack& stack, std::uint64_t seed) {
  const Stack in = torch::jit::pop(stack, kEfficient.count);
  const auto [output, log_sum] = kEfficient.attention(in, seed).forward();
  torch::jit::push(stack, output, log_sum, seed_tensor(seed), seed_tensor(0));
}

void efficient_backward(Stack& stack, std::uint64_t) {
  const Stack in = torch::jit::pop(stack, kEfficientBackward.count);
  const Attention attention = kEfficientBackward.attention(in, 0);
  auto [of_query, of_key, of_value, of_scores] = attention.backward(in[0].toTensor());
  const bool wants_bias = in[10].toBoolList().get(3) && attention.bias.defined();
  torch::jit::push(stack, of_query, of_key, of_value,
                   wants_bias ? of_scores.to(attention.bias.scalar_type()) : Tensor());
}

template <const Places& places>
void forward_with_lengths(Stack& stack, std::uint64_t seed) {
  const Stack in = torch::jit::pop(stack, places.count);
  const Attention attention = places.attention(in, seed);
  const auto [output, log_sum] = attention.forward();
  torch::jit::push(stack, output, log_sum, Tensor(), Tensor(), attention.query.size(2),
                   attention.key.size(2), seed_tensor(seed), seed_tensor(0), Tensor());
}

template <const Places& places>
void backward_with_lengths(Stack& stack, std::uint64_t) {
  const Stack in = torch::jit::pop(stack, places.count);
  auto [of_query, of_key, of_value, of_scores] = places.attention(in, 0).backward(in[0].toTensor());
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
      {"aten::_scaled_dot_product_cudnn_attention", forward_with_lengths<kCudnn>},
      {"aten::_scaled_dot_product_cudnn_attention_backward", backward_with_lengths<kCudnnBackward>},
      {"aten::_scaled_dot_product_flash_attention", forward_with_lengths<kFlash>},
      {"aten::_scaled_dot_product_flash_attention_backward", backward_with_lengths<kFlashBackward>},
  };
  const auto found = kernels.find(name);
  return found == kernels.end() ? nullptr : &found->second;
}

}  // namespace emulated_gpu
