#include "optim/optimizer.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>

#include "tests/optim/optimizer_run.h"

namespace tupelo::optimizer_test {
namespace {

// What holds for every optimizer of the table.

std::vector<NamedParameter> draw_parameters(torch::ScalarType dtype = torch::kFloat32) {
  torch::manual_seed(7);
  std::vector<NamedParameter> parameters;
  const std::vector<std::vector<std::int64_t>> shapes = {{37, 5}, {64}, {1}, {3, 2, 7}};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    parameters.push_back({numbered("p", i), torch::randn(shapes[i], dtype).requires_grad_()});
  }
  return parameters;
}

void draw_gradients(const std::vector<NamedParameter>& parameters, std::int64_t step) {
  torch::manual_seed(static_cast<std::uint64_t>(1000 + step));
  for (const NamedParameter& parameter : parameters) {
    torch::Tensor tensor = parameter.tensor;
    tensor.mutable_grad() = torch::randn_like(tensor.detach());
  }
}

struct Choice {
  std::string name, flavour;
};

std::vector<Choice> choices() {
  std::vector<Choice> choices;
  for (const std::string& name : optimizer_names()) {
    for (const std::string& flavour : optimizer_flavours(name)) choices.push_back({name, flavour});
  }
  return choices;
}

class EveryOptimizer : public testing::TestWithParam<Choice> {
 protected:
  static OptimizerOptions options() {
    OptimizerOptions options;
    options.name = GetParam().name;
    options.flavour = GetParam().flavour;
    return options;
  }

  std::unique_ptr<Optimizer> make(const std::vector<NamedParameter>& parameters,
                                  std::int64_t frozen_until_step = 0) {
    ParameterGroup matrices{"matrices", {}, 1.0, 0.1, frozen_until_step, true};
    ParameterGroup rest{"rest", {}, 1.0, 0.1, frozen_until_step};
    for (const NamedParameter& parameter : parameters) {
      (parameter.tensor.dim() == 2 ? matrices : rest).parameters.push_back(parameter);
    }
    return make_optimizer(options(), {matrices, rest});
  }
};

TEST_P(EveryOptimizer, ReachesTheMinimumOfAParabola) {
  const torch::Tensor target = torch::tensor({1.0, -2.0, 3.0});
  torch::Tensor weight = torch::zeros({3}).requires_grad_();
  const auto optimizer = make_optimizer(options(), {{"all", {{"w", weight}}}});
  for (std::int64_t step = 1; step <= 1000; ++step) {
    weight.mutable_grad() = 2 * (weight.detach() - target);
    optimizer->step(0.05 * static_cast<double>(1000 - step) / 1000, step);
  }
  EXPECT_LT((weight.detach() - target).abs().max().item<double>(), 1e-3);
}

TEST_P(EveryOptimizer, ResumesBitForBit) {
  std::vector<NamedParameter> whole = draw_parameters();
  std::vector<NamedParameter> parts = draw_parameters();
  const auto straight = make(whole);
  auto first = make(parts);
  for (std::int64_t step = 1; step <= 12; ++step) {
    draw_gradients(whole, step);
    straight->step(0.01, step);
    if (step == 6) {
      std::vector<std::pair<std::string, torch::Tensor>> saved;
      for (const auto& [name, tensor] : first->state()) saved.emplace_back(name, tensor.clone());
      std::reverse(saved.begin(), saved.end());
      first = make(parts);
      first->load_state(saved);
    }
    draw_gradients(parts, step);
    first->step(0.01, step);
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_TRUE(same_bits(whole[i].tensor, parts[i].tensor)) << i;
  }
  const auto left = straight->state();
  const auto right = first->state();
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i].first, right[i].first);
    EXPECT_TRUE(same_bits(left[i].second, right[i].second)) << left[i].first;
  }
}

TEST_P(EveryOptimizer, ForgettingTheStateShows) {
  std::vector<NamedParameter> whole = draw_parameters();
  std::vector<NamedParameter> parts = draw_parameters();
  const auto straight = make(whole);
  auto first = make(parts);
  for (std::int64_t step = 1; step <= 2; ++step) {
    draw_gradients(whole, step);
    straight->step(0.01, step);
    if (step == 2) first = make(parts);
    draw_gradients(parts, step);
    first->step(0.01, step);
  }
  EXPECT_FALSE(same_bits(whole[0].tensor, parts[0].tensor));
}

TEST_P(EveryOptimizer, StateAliasesItsOwnStorage) {
  std::vector<NamedParameter> parameters = draw_parameters();
  const auto optimizer = make(parameters);
  const auto before = optimizer->state();
  draw_gradients(parameters, 1);
  optimizer->step(0.01, 1);
  EXPECT_NE(before.front().second.abs().sum().item<double>(), 0.0);
}

TEST_P(EveryOptimizer, FrozenGroupsDoNotMoveAndThenStartAfresh) {
  std::vector<NamedParameter> frozen = draw_parameters();
  std::vector<NamedParameter> fresh = draw_parameters();
  const auto late = make(frozen, 3);
  const auto early = make(fresh);
  for (std::int64_t step = 1; step <= 6; ++step) {
    draw_gradients(frozen, step);
    late->step(0.01, step);
    if (step == 3) {
      for (const auto& [name, tensor] : late->state()) {
        EXPECT_EQ(tensor.count_nonzero().item<std::int64_t>(), 0) << name;
      }
      for (std::size_t i = 0; i < frozen.size(); ++i) {
        EXPECT_TRUE(same_bits(frozen[i].tensor, draw_parameters()[i].tensor));
      }
    }
    if (step > 3) {
      draw_gradients(fresh, step);
      early->step(0.01, step - 3);
    }
  }
  for (std::size_t i = 0; i < frozen.size(); ++i) {
    EXPECT_TRUE(same_bits(frozen[i].tensor, fresh[i].tensor));
  }
}

TEST_P(EveryOptimizer, SkipsParametersWithoutGradient) {
  std::vector<NamedParameter> parameters = draw_parameters();
  const torch::Tensor before = parameters[1].tensor.detach().clone();
  draw_gradients(parameters, 1);
  parameters[1].tensor.mutable_grad() = torch::Tensor();
  make(parameters)->step(0.01, 1);
  EXPECT_TRUE(same_bits(parameters[1].tensor, before));
  EXPECT_FALSE(torch::equal(parameters[0].tensor, draw_parameters()[0].tensor));
}

TEST_P(EveryOptimizer, RateZeroMovesNothing) {
  std::vector<NamedParameter> parameters = draw_parameters();
  draw_gradients(parameters, 1);
  make(parameters)->step(0.0, 1);
  EXPECT_TRUE(torch::equal(parameters[0].tensor, draw_parameters()[0].tensor));
}

TEST_P(EveryOptimizer, TakesGroupsOfMixedDtypesAndGradientsOfAnyLayout) {
  std::vector<NamedParameter> mixed = draw_parameters();
  std::vector<NamedParameter> plain = draw_parameters();
  draw_gradients(mixed, 1);
  draw_gradients(plain, 1);
  const torch::Tensor wide = mixed[1].tensor.detach().to(torch::kFloat64);
  wide.mutable_grad() = mixed[1].tensor.grad().to(torch::kFloat64);
  mixed[1].tensor = wide;
  const torch::Tensor gradient = plain[0].tensor.grad();
  mixed[0].tensor.mutable_grad() = gradient.t().contiguous().t();
  ASSERT_FALSE(mixed[0].tensor.grad().is_contiguous());
  make(mixed)->step(0.01, 1);
  make(plain)->step(0.01, 1);
  EXPECT_TRUE(same_bits(mixed[0].tensor, plain[0].tensor));
  EXPECT_TRUE(torch::allclose(mixed[1].tensor, plain[1].tensor.to(torch::kFloat64)));
  EXPECT_TRUE(same_bits(mixed[3].tensor, plain[3].tensor));
}

using State = std::vector<std::pair<std::string, torch::Tensor>>;

TEST_P(EveryOptimizer, RefusesForeignStateAndChangesNothing) {
  std::vector<NamedParameter> parameters = draw_parameters();
  const auto optimizer = make(parameters);
  draw_gradients(parameters, 1);
  optimizer->step(0.01, 1);
  const std::map<std::string, std::function<void(State&)>> damages = {
      {"missing", [](State& state) { state.pop_back(); }},
      {"extra", [](State& state) { state.emplace_back("exp_avg.other", torch::zeros({1})); }},
      {"twice", [](State& state) { state.push_back(state.front()); }},
      {"shape", [](State& state) { state.back().second = torch::zeros({2}); }},
      {"dtype",
       [](State& state) { state.back().second = state.back().second.to(torch::kFloat64); }}};
  for (const auto& [what, damage] : damages) {
    State state;
    for (const auto& [name, tensor] : optimizer->state()) {
      state.emplace_back(name, torch::full_like(tensor, 9.0));
    }
    damage(state);
    EXPECT_THROW(optimizer->load_state(state), std::invalid_argument) << what;
    for (const auto& [name, tensor] : optimizer->state()) {
      EXPECT_EQ((tensor == 9.0).sum().item<std::int64_t>(), 0) << what << " " << name;
    }
  }
}

// Options that an optimizer is said not to look at change nothing, the others do.
TEST_P(EveryOptimizer, LooksAtTheOptionsThatItSays) {
  const std::map<std::string, double OptimizerOptions::*> all = {
      {"beta1", &OptimizerOptions::beta1},
      {"beta2", &OptimizerOptions::beta2},
      {"epsilon", &OptimizerOptions::epsilon},
      {"momentum", &OptimizerOptions::momentum}};
  const auto moved = [&](const OptimizerOptions& chosen) {
    const std::vector<NamedParameter> parameters = draw_parameters();
    ParameterGroup matrices{"matrices", {parameters[0]}};
    matrices.hidden_matrices = true;
    const auto optimizer =
        make_optimizer(chosen, {matrices, {"rest", {parameters[1], parameters[3]}}});
    for (std::int64_t step = 1; step <= 4; ++step) {
      draw_gradients(parameters, step);
      optimizer->step(0.01, step);
    }
    return torch::cat({parameters[0].tensor.flatten(), parameters[1].tensor.flatten()}).detach();
  };
  const torch::Tensor usual = moved(options());
  for (const auto& [name, member] : all) {
    OptimizerOptions other = options();
    other.*member = 0.5;
    EXPECT_EQ(!same_bits(moved(other), usual), optimizer_uses(other.name, name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Names, EveryOptimizer, testing::ValuesIn(choices()),
                         [](const auto& param) {
                           std::string name = param.param.name + "_" + param.param.flavour;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

std::string refusal(const OptimizerOptions& options, std::vector<ParameterGroup> groups = {}) {
  try {
    make_optimizer(options, std::move(groups));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Optimizer, NamesWhatIsWrong) {
  OptimizerOptions options;
  options.name = "adam";
  EXPECT_EQ(
      refusal(options),
      "unknown optimizer 'adam', did you mean 'adamw'? Valid: adamw, lamb, lion, stable-adamw, "
      "muon");
  options = {};
  options.flavour = "tensorflow";
  EXPECT_EQ(refusal(options), "unknown adamw flavour 'tensorflow'. Valid: torch, fairseq");
  options.name = "lamb";
  options.flavour = "torch";
  EXPECT_EQ(refusal(options), "unknown lamb flavour 'torch'. Valid: corrected, fairseq");
  options.flavour = "farseq";
  EXPECT_EQ(refusal(options),
            "unknown lamb flavour 'farseq', did you mean 'fairseq'? Valid: corrected, fairseq");
  options = {};
  options.beta1 = 1.0;
  EXPECT_NE(refusal(options).find("beta1 must be in [0, 1)"), std::string::npos);
  options = {};
  options.beta2 = std::nan("");
  EXPECT_NE(refusal(options).find("beta2 must be in [0, 1)"), std::string::npos);
  options = {};
  options.epsilon = 0.0;
  EXPECT_NE(refusal(options).find("epsilon must be above 0"), std::string::npos);
  options = {};
  options.momentum = 1.0;
  EXPECT_NE(refusal(options).find("momentum must be in [0, 1)"), std::string::npos);
  EXPECT_NE(refusal({}, {{"g", {}, -1.0, 0.0}}).find("multiplier of group 'g'"), std::string::npos);
  EXPECT_NE(refusal({}, {{"g", {}, 1.0, -0.1}}).find("decay of group 'g'"), std::string::npos);
  EXPECT_NE(refusal({}, {{"g", {}, 1.0, 0.1, -5}}).find("frozen steps of group 'g'"),
            std::string::npos);
}

TEST(Optimizer, TheDefaultFlavourIsTheFirstThatEachKnows) {
  OptimizerOptions options;
  EXPECT_EQ(optimizer_flavour(options), "torch");
  EXPECT_EQ(optimizer_flavours("adamw"), (std::vector<std::string>{"torch", "fairseq"}));
  options.name = "lamb";
  EXPECT_EQ(optimizer_flavour(options), "corrected");
  EXPECT_EQ(optimizer_flavours("lamb"), (std::vector<std::string>{"corrected", "fairseq"}));
  options.flavour = "fairseq";
  EXPECT_EQ(optimizer_flavour(options), "fairseq");
  EXPECT_THROW(optimizer_flavours("lam"), std::invalid_argument);
}

TEST(Optimizer, KnowsWhichOptionsEachLooksAt) {
  EXPECT_TRUE(optimizer_uses("adamw", "epsilon"));
  EXPECT_FALSE(optimizer_uses("adamw", "momentum"));
  EXPECT_FALSE(optimizer_uses("lion", "epsilon"));
  EXPECT_TRUE(optimizer_uses("lion", "beta2"));
  EXPECT_FALSE(optimizer_uses("lion", "beta"));
  EXPECT_TRUE(optimizer_uses("muon", "momentum"));
  EXPECT_TRUE(optimizes_matrices("muon"));
  EXPECT_FALSE(optimizes_matrices("lion"));
  EXPECT_THROW(optimizer_uses("lionn", "beta1"), std::invalid_argument);
}

TEST(Optimizer, TwoParametersOfOneNameAreABrokenContract) {
  const std::vector<NamedParameter> twice = {{"w", torch::ones({1})}, {"w", torch::ones({1})}};
  EXPECT_THROW(make_optimizer({}, {{"all", twice}}), c10::Error);
}

}  // namespace
}  // namespace tupelo::optimizer_test
