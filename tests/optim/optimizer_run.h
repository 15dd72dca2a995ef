// Drives an optimizer through a case of reference vectors.
#pragma once

#include <torch/types.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "optim/optimizer.h"
#include "tests/support/refvec.h"

namespace tupelo {

template <typename Integer>
std::string numbered(const std::string& prefix, Integer i) {
  return prefix + std::to_string(i);
}

inline bool same_bits(const torch::Tensor& left, const torch::Tensor& right) {
  return left.sizes() == right.sizes() && left.scalar_type() == right.scalar_type() &&
         (left.nbytes() == 0 ||
          std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0);
}

// An optimizer on the parameters and gradients of a case of reference vectors, clipped if the case
// clips. The vectors must outlive it.
class OptimizerRun {
 public:
  OptimizerRun(const Refvec& vectors, const std::string& flavour) : vectors_(vectors) {
    OptimizerOptions options;
    options.name = vectors.name();
    options.beta1 = vectors.number("beta1");
    options.beta2 = vectors.number("beta2");
    options.epsilon = vectors.number("eps");
    options.flavour = flavour;
    optimizer_ = make_optimizer(options, groups());
  }

  // Clips and updates with the gradients of update `n` from 0; returns the norm before clipping.
  double update(std::int64_t n) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].mutable_grad() = vectors_.tensor(numbered(numbered("in.grad.", n) + ".", i));
    }
    const double norm =
        clip_global_norm(parameters_, vectors_.has("cfg.clip") ? vectors_.number("clip") : 0.0);
    optimizer_->step(vectors_.tensor("in.lr")[n][0].item<double>(), n + 1);
    return norm;
  }

  Optimizer& optimizer() { return *optimizer_; }
  std::vector<torch::Tensor>& parameters() { return parameters_; }

 private:
  std::vector<ParameterGroup> groups() {
    const torch::Tensor group_of = vectors_.tensor("in.group");
    const torch::Tensor weight_decay = vectors_.tensor("in.weight_decay");
    const torch::Tensor rates = vectors_.tensor("in.lr");
    std::vector<ParameterGroup> groups(static_cast<std::size_t>(weight_decay.size(0)));
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const auto index = static_cast<std::int64_t>(g);
      groups[g].name = numbered("group", g);
      groups[g].weight_decay = weight_decay[index].item<double>();
      groups[g].learning_rate_multiplier =
          rates[0][index].item<double>() / rates[0][0].item<double>();
    }
    for (std::int64_t i = 0; i < group_of.size(0); ++i) {
      parameters_.push_back(vectors_.tensor(numbered("in.param.", i)).requires_grad_());
      groups[static_cast<std::size_t>(group_of[i].item<std::int64_t>())].parameters.push_back(
          {std::to_string(i), parameters_.back()});
    }
    return groups;
  }

  const Refvec& vectors_;
  std::vector<torch::Tensor> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace tupelo
