#include "optim/parameter_groups.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tupelo::parameter_groups_test {
namespace {

std::vector<NamedParameter> parameters_called(const std::vector<std::string>& names) {
  std::vector<NamedParameter> parameters;
  for (const std::string& name : names) parameters.push_back({name, torch::zeros({2})});
  return parameters;
}

std::vector<std::string> names_in(const ParameterGroup& group) {
  std::vector<std::string> names;
  for (const NamedParameter& parameter : group.parameters) names.push_back(parameter.name);
  return names;
}

const ParameterGroupNames kNames = {
    {"word.weight", "dense.weight"}, {"dense.bias"}, {"pos.weight"}, {"pos_ln.weight"}};
const std::vector<std::string> kAll = {"word.weight", "pos.weight", "pos_ln.weight", "dense.weight",
                                       "dense.bias"};

TEST(ParameterGroups, SortsByExactNameAndKeepsTheModelsOrder) {
  ParameterGroupOptions options;
  options.weight_decay = 0.1;
  options.position_weight_decay = 0.05;
  options.position_learning_rate_multiplier = 0.2;
  options.position_frozen_steps = 100;
  const auto parameters = parameters_called(kAll);
  const auto groups = make_parameter_groups(parameters, kNames, options);
  ASSERT_EQ(groups.size(), 4u);

  EXPECT_EQ(groups[0].name, "decayed");
  EXPECT_EQ(names_in(groups[0]), (std::vector<std::string>{"word.weight", "dense.weight"}));
  EXPECT_TRUE(groups[0].parameters[1].tensor.is_same(parameters[3].tensor));
  EXPECT_EQ(groups[0].weight_decay, 0.1);
  EXPECT_EQ(groups[0].learning_rate_multiplier, 1.0);
  EXPECT_EQ(groups[0].frozen_until_step, 0);

  EXPECT_EQ(groups[1].name, "undecayed");
  EXPECT_EQ(names_in(groups[1]), std::vector<std::string>{"dense.bias"});
  EXPECT_EQ(groups[1].weight_decay, 0.0);
  EXPECT_EQ(groups[1].learning_rate_multiplier, 1.0);

  EXPECT_EQ(groups[2].name, "position_decayed");
  EXPECT_EQ(names_in(groups[2]), std::vector<std::string>{"pos.weight"});
  EXPECT_EQ(groups[2].weight_decay, 0.05);
  EXPECT_EQ(groups[2].learning_rate_multiplier, 0.2);
  EXPECT_EQ(groups[2].frozen_until_step, 100);

  EXPECT_EQ(groups[3].name, "position_undecayed");
  EXPECT_EQ(names_in(groups[3]), std::vector<std::string>{"pos_ln.weight"});
  EXPECT_EQ(groups[3].weight_decay, 0.0);
  EXPECT_EQ(groups[3].learning_rate_multiplier, 0.2);
  EXPECT_EQ(groups[3].frozen_until_step, 100);
}

TEST(ParameterGroups, EmptyGroupsStay) {
  const auto groups = make_parameter_groups(parameters_called({"w"}), {{"w"}, {}, {}, {}}, {});
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_TRUE(groups[2].parameters.empty());
}

std::string refusal(const std::vector<std::string>& parameters, const ParameterGroupNames& names) {
  try {
    make_parameter_groups(parameters_called(parameters), names, {});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ParameterGroups, RefusesAParameterInNoGroup) {
  EXPECT_EQ(refusal({"w", "w.bias"}, {{"w"}, {}, {}, {}}),
            "parameter 'w.bias' is in no parameter group");
}

TEST(ParameterGroups, RefusesAParameterInTwoGroups) {
  EXPECT_EQ(refusal({"w"}, {{"w"}, {}, {"w"}, {}}),
            "parameter 'w' is listed twice: as decayed and as position_decayed");
  EXPECT_EQ(refusal({"w"}, {{"w", "w"}, {}, {}, {}}),
            "parameter 'w' is listed twice: as decayed and as decayed");
}

TEST(ParameterGroups, RefusesANameThatNoParameterHas) {
  EXPECT_EQ(refusal({"w"}, {{"w"}, {}, {}, {"gone"}}),
            "parameter group 'position_undecayed' lists 'gone', which no parameter is called");
}

TEST(ParameterGroups, RefusesTwoParametersOfOneName) {
  EXPECT_EQ(refusal({"w", "w"}, {{"w"}, {}, {}, {}}), "two parameters are called 'w'");
}

}  // namespace
}  // namespace tupelo::parameter_groups_test
