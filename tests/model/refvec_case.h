// A reference case of attention: its inputs q, k, v, encodings with the case's parameters, and at
// the end the certainty that no stored result was left out.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/position/position_encoding.h"
#include "tests/support/refvec.h"

namespace tupelo {

class RefvecCase {
 public:
  // Our names of parameters and the files', where they differ.
  using Names = std::map<std::string, std::string>;

  RefvecCase(const std::string& name, torch::ScalarType precision)
      : vectors(Refvec::load(name, precision)), loss_(torch::zeros({1}, precision)) {
    for (const std::string input : {"q", "k", "v", "x"}) {
      if (vectors.has("in." + input)) {
        inputs_[input] = vectors.tensor("in." + input).requires_grad_();
      }
    }
  }

  const torch::Tensor& input(const std::string& name) const { return inputs_.at(name); }
  torch::Tensor key_mask() const { return vectors.tensor("in.mask").to(torch::kBool); }

  PositionContext context() const {
    PositionContext context;
    context.heads = vectors.integer("heads");
    context.head_width = vectors.has("cfg.head_dim")
                             ? vectors.integer("head_dim")
                             : vectors.integer("dim") / vectors.integer("heads");
    context.max_positions = vectors.integer("seq");
    if (vectors.has("cfg.eps")) context.layer_norm_epsilon = vectors.number("eps");
    return context;
  }

  std::shared_ptr<PositionEncoding> encoding(const std::string& name,
                                             const PositionOptions& options,
                                             const Names& names = {}) {
    const auto made = make_position_encoding(name, context(), options);
    made->to(vectors.precision());
    adopt(*made, names);
    return made;
  }

  // Fills a module with the case's parameters and has finish() look at their gradients.
  template <typename Module>
  void adopt(Module& module, const Names& names) {
    torch::NoGradGuard no_grad;
    for (auto& parameter : module.named_parameters()) {
      const auto renamed = names.find(parameter.key());
      const std::string& name = renamed == names.end() ? parameter.key() : renamed->second;
      parameter.value().copy_(vectors.tensor("param." + name));
      parameters_.emplace_back(name, parameter.value());
    }
  }

  void compare(const std::string& name, const torch::Tensor& actual) {
    EXPECT_TRUE(vectors.compare("out." + name, actual));
    seen_.insert("out." + name);
  }

  // Attention results [B,N,T,D] or hidden states [B,T,H]: rows of padding are stored as zeros.
  void compare_rows(const std::string& name, const torch::Tensor& actual) {
    torch::Tensor mask = key_mask();
    mask = actual.dim() == 4 ? mask.unsqueeze(1).unsqueeze(-1) : mask.unsqueeze(-1);
    const torch::Tensor result = actual * mask.to(actual.scalar_type());
    compare(name, result);
    add_to_loss(name, result);
  }

  void add_to_loss(const std::string& name, const torch::Tensor& result) {
    if (vectors.has("cot." + name)) {
      loss_ = loss_ + (result * vectors.tensor("cot." + name)).sum();
      used_cotangents_.insert("cot." + name);
    }
  }

  // The loss, and the gradients of all inputs and adopted parameters.
  void backward() {
    compare("loss", loss_);
    loss_.backward();
    std::map<std::string, torch::Tensor> gradients;
    for (const auto& [name, tensor] : inputs_) gradients[name] = tensor.grad();
    for (const auto& [name, tensor] : parameters_) {
      const torch::Tensor gradient =
          tensor.grad().defined() ? tensor.grad() : torch::zeros_like(tensor);
      gradients[name] = gradients.count(name) ? gradients[name] + gradient : gradient;
    }
    for (const auto& [name, gradient] : gradients) compare_gradient(name, gradient);
  }

  void compare_gradient(const std::string& name, const torch::Tensor& gradient) {
    EXPECT_TRUE(vectors.compare("grad." + name, gradient));
    seen_.insert("grad." + name);
  }

  // Nothing may be left in the file.
  void finish() {
    for (const std::string prefix : {"out.", "grad."}) {
      for (const std::string& key : vectors.keys(prefix)) {
        EXPECT_EQ(seen_.count(key), 1u) << key << " of " << vectors.name() << " was not looked at";
      }
    }
    EXPECT_EQ(used_cotangents_.size(), vectors.keys("cot.").size());
  }

  const Refvec vectors;

 private:
  torch::Tensor loss_;
  std::map<std::string, torch::Tensor> inputs_;
  std::vector<std::pair<std::string, torch::Tensor>> parameters_;
  std::set<std::string> seen_, used_cotangents_;
};

}  // namespace tupelo
