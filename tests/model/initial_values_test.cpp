#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>

#include "model/roberta.h"
#include "tests/model/formulas.h"
#include "tests/model/tiny_model.h"

namespace tupelo::initial_values_test {
namespace {

using torch::Tensor;

ModelOptions wide_options() {
  ModelOptions options = tiny_options("0:tupe-r,1:tupe-full");
  options.hidden_size = 96;
  options.vocab_size = 500;
  options.intermediate_size = 200;
  options.initializer_range = 0.02;
  options.input_position = "learned";
  return options;
}

TEST(InitialValues, SameSeedSameModelWhateverElseWasDrawn) {
  const auto first = tiny_model(wide_options(), torch::kFloat32);
  torch::randn({1000});
  const auto second = tiny_model(wide_options(), torch::kFloat32);
  const auto expected = second->named_parameters();
  for (const auto& parameter : first->named_parameters()) {
    EXPECT_TRUE(parameter.value().equal(expected[parameter.key()])) << parameter.key();
  }
}

TEST(InitialValues, SeedsDiffer) {
  RobertaForMaskedLm first(wide_options()), second(wide_options());
  first.initialize(3);
  second.initialize(4);
  const auto others = second.named_parameters();
  for (const auto& parameter : first.named_parameters()) {
    const bool random = parameter.value().dim() > 1 &&
                        parameter.key().find("roberta.position.1.pos.") == std::string::npos;
    EXPECT_EQ(!parameter.value().equal(others[parameter.key()]), random) << parameter.key();
  }
}

TEST(InitialValues, DoNotTouchTheDefaultGenerator) {
  torch::manual_seed(5);
  const Tensor expected = torch::rand({3});
  torch::manual_seed(5);
  tiny_model(wide_options());
  EXPECT_TRUE(torch::rand({3}).equal(expected));
}

TEST(InitialValues, FollowTheRulesOfEachKind) {
  const auto model = tiny_model(wide_options(), torch::kFloat32);
  for (const auto& parameter : model->named_parameters()) {
    const std::string& name = parameter.key();
    const Tensor value = parameter.value().detach();
    const bool is_norm = name.find("LayerNorm.weight") != std::string::npos ||
                         name.find("_norm.weight") != std::string::npos ||
                         name.find("_ln.weight") != std::string::npos;
    if (is_norm) {
      EXPECT_TRUE(value.equal(torch::ones_like(value))) << name;
    } else if (value.dim() == 1) {
      EXPECT_TRUE(value.equal(torch::zeros_like(value))) << name;
    } else if (value.numel() > 5000 && name.find("position.1.pos.") == std::string::npos) {
      EXPECT_NEAR(value.std().item<double>(), 0.02, 0.001) << name;
      EXPECT_NEAR(value.mean().item<double>(), 0.0, 0.001) << name;
    }
  }
  const auto parameters = model->named_parameters();
  for (const std::string table : {"word_embeddings", "position_embeddings"}) {
    const Tensor weight = parameters["roberta.embeddings." + table + ".weight"];
    EXPECT_EQ(weight[1].abs().max().item<double>(), 0.0) << "pad row of " << table;
    EXPECT_GT(weight[0].abs().max().item<double>(), 0.0);
  }
}

TEST(InitialValues, OfTheBackboneDoNotDependOnThePlanOrPrecision) {
  ModelOptions other = wide_options();
  other.position = "all:none";
  const auto first = tiny_model(wide_options(), torch::kFloat32);
  RobertaForMaskedLm second(other);
  second.to(torch::kFloat64);
  second.initialize(3);
  const auto expected = first->named_parameters();
  for (const auto& parameter : second.named_parameters()) {
    EXPECT_TRUE(parameter.value().to(torch::kFloat32).equal(expected[parameter.key()]))
        << parameter.key();
  }
}

}  // namespace
}  // namespace tupelo::initial_values_test
