#include "optim/optimizer.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>

#include "tests/support/refvec.h"

namespace tupelo {
namespace {

std::string numbered(const std::string& prefix, std::int64_t i) {
  return prefix + std::to_string(i);
}

// The case `adamw`: the same parameters and gradients for both flavours.
class AdamWRun {
 public:
  AdamWRun(const Refvec& vectors, const std::string& flavour) : vectors_(vectors) {
    OptimizerOptions options;
    options.beta1 = vectors.number("beta1");
    options.beta2 = vectors.number("beta2");
    options.epsilon = vectors.number("eps");
    options.flavour = flavour;
    optimizer_ = make_optimizer(options, groups());
  }

  // Clips and updates with the gradients of update `n` from 0; returns the norm before clipping.
  double update(std::int64_t n) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].mutable_grad() =
          vectors_.tensor(numbered(numbered("in.grad.", n) + ".", static_cast<std::int64_t>(i)));
    }
    const double norm = clip_global_norm(parameters_, vectors_.number("clip"));
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
      groups[g].name = numbered("group", index);
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

class AdamWVectors : public testing::TestWithParam<std::tuple<std::string, torch::ScalarType>> {};

TEST_P(AdamWVectors, EveryUpdateMatches) {
  const auto& [flavour, precision] = GetParam();
  const double relative = precision == torch::kFloat64 ? 1e-12 : 1e-6;
  const Refvec vectors = Refvec::load("adamw", precision);
  const std::string out = "out." + flavour + ".";
  AdamWRun run(vectors, flavour);
  for (std::int64_t n = 0; n < vectors.integer("steps"); ++n) {
    const torch::Tensor norm = torch::full({1}, run.update(n), torch::kFloat64);
    EXPECT_TRUE(vectors.compare_each(numbered(out + "norm.", n), norm, relative));
    for (std::size_t i = 0; i < run.parameters().size(); ++i) {
      const std::string key =
          numbered(numbered(out + "param.", n) + ".", static_cast<std::int64_t>(i));
      EXPECT_TRUE(vectors.compare_to_scale(key, run.parameters()[i], relative));
    }
  }
  for (const auto& [name, tensor] : run.optimizer().state()) {
    EXPECT_TRUE(vectors.compare_to_scale(out + name, tensor, relative));
  }
}

INSTANTIATE_TEST_SUITE_P(FlavoursAndPrecisions, AdamWVectors,
                         testing::Combine(testing::Values("torch", "fairseq"),
                                          testing::Values(torch::kFloat64, torch::kFloat32)),
                         [](const auto& param) {
                           return std::get<0>(param.param) + "_" +
                                  toString(std::get<1>(param.param));
                         });

// What holds for every optimizer of the table.

std::vector<NamedParameter> draw_parameters(torch::ScalarType dtype = torch::kFloat32) {
  torch::manual_seed(7);
  std::vector<NamedParameter> parameters;
  const std::vector<std::vector<std::int64_t>> shapes = {{37, 5}, {64}, {1}, {3, 2, 7}};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    parameters.push_back({numbered("p", static_cast<std::int64_t>(i)),
                          torch::randn(shapes[i], dtype).requires_grad_()});
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

bool same_bits(const torch::Tensor& left, const torch::Tensor& right) {
  return left.sizes() == right.sizes() && left.scalar_type() == right.scalar_type() &&
         (left.nbytes() == 0 ||
          std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0);
}

class EveryOptimizer : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Optimizer> make(const std::vector<NamedParameter>& parameters,
                                  std::int64_t frozen_until_step = 0) {
    OptimizerOptions options;
    options.name = GetParam();
    return make_optimizer(options, {{"all", parameters, 1.0, 0.1, frozen_until_step}});
  }
};

TEST_P(EveryOptimizer, ReachesTheMinimumOfAParabola) {
  const torch::Tensor target = torch::tensor({1.0, -2.0, 3.0});
  torch::Tensor weight = torch::zeros({3}).requires_grad_();
  OptimizerOptions options;
  options.name = GetParam();
  const auto optimizer = make_optimizer(options, {{"all", {{"w", weight}}}});
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

INSTANTIATE_TEST_SUITE_P(Names, EveryOptimizer, testing::ValuesIn(optimizer_names()),
                         [](const auto& param) { return param.param; });

// A parameter cut into slices, as when ranks share the optimizer's work.
TEST(AdamW, SlicesGiveTheBitsOfTheWhole) {
  torch::manual_seed(3);
  const torch::Tensor start = torch::randn({1003});
  const torch::Tensor gradient = torch::randn({1003});
  torch::Tensor whole = start.clone();
  whole.mutable_grad() = gradient;
  make_optimizer({}, {{"all", {{"w", whole}}, 1.0, 0.1}})->step(0.01, 1);
  torch::Tensor sliced = start.clone();
  std::vector<NamedParameter> slices;
  for (const auto& [begin, end] : {std::pair{0, 7}, {7, 338}, {338, 1003}}) {
    torch::Tensor slice = sliced.slice(0, begin, end).detach();
    slice.mutable_grad() = gradient.slice(0, begin, end);
    slices.push_back({std::to_string(begin), slice});
  }
  make_optimizer({}, {{"all", slices, 1.0, 0.1}})->step(0.01, 1);
  EXPECT_TRUE(same_bits(whole, sliced));
}

TEST(AdamW, DecaysOnlyWhatItsGroupSays) {
  torch::Tensor decayed = torch::ones({4});
  torch::Tensor kept = torch::ones({4});
  decayed.mutable_grad() = torch::zeros({4});
  kept.mutable_grad() = torch::zeros({4});
  const auto optimizer =
      make_optimizer({}, {{"decayed", {{"a", decayed}}, 2.0, 0.25}, {"undecayed", {{"b", kept}}}});
  optimizer->step(0.5, 1);
  EXPECT_TRUE(torch::equal(decayed, torch::full({4}, 0.75)));
  EXPECT_TRUE(torch::equal(kept, torch::ones({4})));
}

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
  EXPECT_EQ(refusal(options), "unknown optimizer 'adam', did you mean 'adamw'? Valid: adamw");
  options = {};
  options.flavour = "tensorflow";
  EXPECT_EQ(refusal(options), "unknown AdamW flavour 'tensorflow'. Valid: torch, fairseq");
  options = {};
  options.beta1 = 1.0;
  EXPECT_NE(refusal(options).find("beta1 must be in [0, 1)"), std::string::npos);
  options = {};
  options.beta2 = std::nan("");
  EXPECT_NE(refusal(options).find("beta2 must be in [0, 1)"), std::string::npos);
  options = {};
  options.epsilon = 0.0;
  EXPECT_NE(refusal(options).find("epsilon must be above 0"), std::string::npos);
  EXPECT_NE(refusal({}, {{"g", {}, -1.0, 0.0}}).find("multiplier of group 'g'"), std::string::npos);
  EXPECT_NE(refusal({}, {{"g", {}, 1.0, -0.1}}).find("decay of group 'g'"), std::string::npos);
  EXPECT_NE(refusal({}, {{"g", {}, 1.0, 0.1, -5}}).find("frozen steps of group 'g'"),
            std::string::npos);
}

TEST(Optimizer, TwoParametersOfOneNameAreABrokenContract) {
  const std::vector<NamedParameter> twice = {{"w", torch::ones({1})}, {"w", torch::ones({1})}};
  EXPECT_THROW(make_optimizer({}, {{"all", twice}}), c10::Error);
}

}  // namespace
}  // namespace tupelo
