#include "model/layers.h"

#include <ATen/CPUGeneratorImpl.h>

namespace tupelo {

at::Generator initial_value_generator(std::uint64_t seed, const std::string& name) {
  // FNV-1a over the name, then one splitmix64 round, so that neighbouring seeds share nothing.
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const unsigned char letter : name) {
    hash = (hash ^ letter) * 0x100000001b3ULL;
  }
  std::uint64_t mixed = (seed + 0x9e3779b97f4a7c15ULL) ^ hash;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  return at::make_generator<at::CPUGeneratorImpl>(mixed ^ (mixed >> 31));
}

void fill_normal(torch::Tensor& tensor, double standard_deviation, at::Generator generator) {
  torch::NoGradGuard no_grad;
  const auto cpu_float = torch::TensorOptions().dtype(torch::kFloat32).device(torch::kCPU);
  torch::Tensor values = at::empty(tensor.sizes(), cpu_float);
  values.normal_(0.0, standard_deviation, std::move(generator));
  tensor.copy_(values);
}

Linear::Linear(std::int64_t in, std::int64_t out, bool with_bias)
    : weight(register_parameter("weight", torch::zeros({out, in}))) {
  if (with_bias) {
    bias = register_parameter("bias", torch::zeros({out}));
  }
}

void Linear::initialize(double standard_deviation, const at::Generator& generator) {
  torch::NoGradGuard no_grad;
  fill_normal(weight, standard_deviation, generator);
  if (bias.defined()) {
    bias.zero_();
  }
}

torch::Tensor Linear::forward(const torch::Tensor& input) const {
  return at::linear(input, weight, bias);
}

Embedding::Embedding(std::int64_t rows, std::int64_t width, std::int64_t padding_row)
    : weight(register_parameter("weight", torch::zeros({rows, width}))),
      padding_row_(padding_row) {}

void Embedding::initialize(double standard_deviation, const at::Generator& generator) {
  torch::NoGradGuard no_grad;
  fill_normal(weight, standard_deviation, generator);
  if (padding_row_ >= 0) {
    weight[padding_row_].zero_();
  }
}

torch::Tensor Embedding::forward(const torch::Tensor& indices) const {
  return at::embedding(weight, indices, padding_row_);
}

LayerNorm::LayerNorm(std::int64_t width, double epsilon)
    : weight(register_parameter("weight", torch::ones({width}))),
      bias(register_parameter("bias", torch::zeros({width}))),
      epsilon_(epsilon) {}

void LayerNorm::initialize() {
  torch::NoGradGuard no_grad;
  weight.fill_(1.0);
  bias.zero_();
}

torch::Tensor LayerNorm::forward(const torch::Tensor& input) const {
  return at::layer_norm(input, weight.sizes(), weight, bias, epsilon_);
}

}  // namespace tupelo
