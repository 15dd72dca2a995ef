// Holds optimizers to what public implementations make of the same tensors:
// reference/make_optimizers.py.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace tupelo::published_optimizers_test {
namespace {

using nlohmann::json;

const json& vectors() {
  static const json content = [] {
    std::ifstream file(TUPELO_OPTIMIZERS_JSON);
    return json::parse(file);
  }();
  return content;
}

torch::Tensor tensor_of(const json& values, std::size_t parameter) {
  const auto shape = vectors().at("shapes").at(parameter).get<std::vector<std::int64_t>>();
  return torch::tensor(values.at(parameter).get<std::vector<double>>(), torch::kFloat64)
      .reshape(shape);
}

// The optimizer of a case "NAME FLAVOUR" on the parameters of the file.
class PublishedRun {
 public:
  PublishedRun(const std::string& name, torch::ScalarType precision) : precision_(precision) {
    OptimizerOptions options;
    options.name = name.substr(0, name.find(' '));
    options.flavour = name.substr(name.find(' ') + 1);
    options.beta1 = vectors().at("beta1").get<double>();
    options.beta2 = vectors().at("beta2").get<double>();
    options.epsilon = vectors().at("epsilon").get<double>();
    options.momentum = vectors().at("momentum").get<double>();
    optimizer_ = make_optimizer(options, groups(optimizes_matrices(options.name)));
  }

  void update(std::size_t n) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].mutable_grad() = tensor_of(vectors().at("gradients").at(n), i).to(precision_);
    }
    optimizer_->step(vectors().at("rates").at(n).get<double>(), static_cast<std::int64_t>(n) + 1);
  }

  const std::vector<torch::Tensor>& parameters() const { return parameters_; }

 private:
  std::vector<ParameterGroup> groups(bool of_matrices) {
    const double decay = vectors().at("weight_decay").get<double>();
    ParameterGroup matrices{"matrices", {}, 1.0, decay};
    ParameterGroup rest{"rest", {}, of_matrices ? vectors().at("rest").get<double>() : 1.0, decay};
    matrices.hidden_matrices = true;
    for (std::size_t i = 0; i < vectors().at("shapes").size(); ++i) {
      parameters_.push_back(
          tensor_of(vectors().at("parameters"), i).to(precision_).requires_grad_());
      ParameterGroup& group = i < vectors().at("matrices").get<std::size_t>() ? matrices : rest;
      group.parameters.push_back({std::to_string(i), parameters_.back()});
    }
    return {matrices, rest};
  }

  torch::ScalarType precision_;
  std::vector<torch::Tensor> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
};

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& [name, after] : vectors().at("after").items()) names.push_back(name);
  return names;
}

class PublishedOptimizers
    : public testing::TestWithParam<std::tuple<std::string, torch::ScalarType>> {};

TEST_P(PublishedOptimizers, EveryUpdateMatches) {
  const auto& [name, precision] = GetParam();
  const double relative = precision == torch::kFloat64 ? 1e-10 : 1e-5;
  const json& after = vectors().at("after").at(name);
  PublishedRun run(name, precision);
  std::size_t compared = 0;
  for (std::size_t n = 0; n < vectors().at("gradients").size(); ++n) {
    run.update(n);
    const auto shown = after.find(std::to_string(n + 1));
    if (shown == after.end()) continue;
    for (std::size_t i = 0; i < run.parameters().size(); ++i, ++compared) {
      const torch::Tensor expected = tensor_of(*shown, i);
      const torch::Tensor actual = run.parameters()[i].detach().to(torch::kFloat64);
      const double error = (actual - expected).abs().max().item<double>();
      EXPECT_LE(error, relative * expected.abs().max().item<double>())
          << "update " << n + 1 << ", parameter " << i;
    }
  }
  EXPECT_EQ(compared, after.size() * run.parameters().size());
  EXPECT_GE(vectors().at("gradients").size(), 10u);
}

INSTANTIATE_TEST_SUITE_P(CasesAndPrecisions, PublishedOptimizers,
                         testing::Combine(testing::ValuesIn(cases()),
                                          testing::Values(torch::kFloat64, torch::kFloat32)),
                         [](const auto& param) {
                           std::string name = std::get<0>(param.param);
                           for (char& c : name) c = c == ' ' || c == '-' ? '_' : c;
                           return name + "_" + toString(std::get<1>(param.param));
                         });

}  // namespace
}  // namespace tupelo::published_optimizers_test
