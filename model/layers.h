// The three parametrised maps that everything here is made of, with RoBERTa's initial values.
// Unlike torch::nn's they draw nothing when constructed: values are zero (one for a norm's weight)
// until initialize() is called with an explicit generator, so that a model is a function of its
// seed alone.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <string>

namespace tupelo {

// A generator on the CPU for the parameters below `name`: a function of (seed, name) only, so that
// models which differ elsewhere start from the same values here.
at::Generator initial_value_generator(std::uint64_t seed, const std::string& name);

// Fills `tensor` with N(0, standard_deviation^2). Drawn in float32 on the CPU, whatever the
// tensor's dtype and device are.
void fill_normal(torch::Tensor& tensor, double standard_deviation, at::Generator generator);

// y = x W^T + b, W [out,in]; without a bias, b is undefined and 0.
class Linear : public torch::nn::Module {
 public:
  Linear(std::int64_t in, std::int64_t out, bool with_bias = true);
  void initialize(double standard_deviation, const at::Generator& generator);
  torch::Tensor forward(const torch::Tensor& input) const;

  torch::Tensor weight;
  torch::Tensor bias;
};

// Rows looked up by index. With padding_row >= 0 a look-up sends no gradient to that row, which
// also starts as zero; other uses of `weight` still reach it.
class Embedding : public torch::nn::Module {
 public:
  Embedding(std::int64_t rows, std::int64_t width, std::int64_t padding_row = -1);
  void initialize(double standard_deviation, const at::Generator& generator);
  torch::Tensor forward(const torch::Tensor& indices) const;

  torch::Tensor weight;

 private:
  std::int64_t padding_row_;
};

// Over the last dimension, biased variance, affine.
class LayerNorm : public torch::nn::Module {
 public:
  LayerNorm(std::int64_t width, double epsilon);
  void initialize();
  torch::Tensor forward(const torch::Tensor& input) const;

  torch::Tensor weight;
  torch::Tensor bias;

 private:
  double epsilon_;
};

}  // namespace tupelo
