#include "model/recompute.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "model/dropout.h"
#include "tests/model/formulas.h"
#include "tests/model/tiny_model.h"

namespace tupelo::recompute_test {
namespace {

using torch::Tensor;

struct Outcome {
  Tensor loss;
  std::map<std::string, Tensor> gradients;
  Tensor next_random;
};

Outcome train_once(ModelOptions options, const std::string& recomputed, std::int64_t tokens,
                   torch::ScalarType type) {
  options.recompute = recomputed;
  options.dropout = options.attention_dropout = 0.1;
  const auto model = tiny_model(options, type);
  torch::manual_seed(tokens);
  TinyBatch batch(3, tokens);
  if (tokens > 4) batch.pad(2);
  torch::manual_seed(99);
  Outcome outcome;
  outcome.loss = batch.loss(*model);
  outcome.loss.backward();
  outcome.next_random = torch::rand({4});
  outcome.gradients = gradients_of(*model);
  return outcome;
}

class RecomputedPlan : public testing::TestWithParam<std::string> {};

TEST_P(RecomputedPlan, GradientsAreBitwiseThoseOfKeptActivations) {
  const ModelOptions options = tiny_options(GetParam(), 4);
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    for (const std::int64_t tokens : {1, 7, 16}) {
      const Outcome kept = train_once(options, "none", tokens, type);
      for (const std::string policy :
           {"full", "attention", "ffn", "every-2", "0", "1-2", "0+3:ffn,1:attention,2:full"}) {
        const Outcome again = train_once(options, policy, tokens, type);
        EXPECT_TRUE(again.loss.equal(kept.loss));
        EXPECT_TRUE(again.next_random.equal(kept.next_random)) << "generator was moved";
        ASSERT_EQ(again.gradients.size(), kept.gradients.size());
        for (const auto& [name, gradient] : kept.gradients) {
          EXPECT_TRUE(again.gradients.at(name).equal(gradient)) << name << " recompute " << policy;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, RecomputedPlan,
                         testing::Values("all:none", "all:tupe-a", "all:tupe-a(fold=concat)",
                                         "all:tupe-r", "0-1:none,2-3:tupe-r",
                                         "0+2:tupe-r,1+3:tupe-full(pp=both,temperature=per-head)",
                                         "all:tupe-full(share=layer)",
                                         "all:tupe-full(temperature=shared,temperature_cc=true)"));

TEST(Recompute, UnknownLayersAreRefused) {
  ModelOptions options = tiny_options("all:tupe-r");
  for (const std::string wrong : {"2", "some", "0-", "1-0", "", "0:some", "0:all", "every-0",
                                  "every-3", "auto:", "0,0:ffn"}) {
    options.recompute = wrong;
    EXPECT_THROW(RobertaForMaskedLm{options}, std::invalid_argument) << wrong;
  }
}

TEST(Recompute, KeepsNoActivationUntilBackward) {
  const Tensor input = torch::randn({8}).requires_grad_();
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> activations;
  const Segment segment = [&activations](const std::vector<Tensor>& given) {
    const Tensor activation = given[0] * 2;
    activations.emplace_back(activation.getIntrusivePtr());
    return activation * activation;
  };
  const Tensor kept = segment({input});
  EXPECT_FALSE(activations[0].expired());
  const Tensor result = recompute(segment, {input}, {});
  EXPECT_TRUE(activations[1].expired());
  result.sum().backward();
  EXPECT_TRUE(input.grad().equal(8 * input));
}

TEST(Recompute, RunsTheSegmentOnceWithoutGradientMode) {
  int runs = 0;
  const Segment segment = [&runs](const std::vector<Tensor>& given) {
    ++runs;
    return given[0] * 2;
  };
  const Tensor input = torch::randn({3}).requires_grad_();
  {
    torch::NoGradGuard no_grad;
    recompute(segment, {input}, {});
  }
  EXPECT_EQ(runs, 1);
  recompute(segment, {input}, {}).sum().backward();
  EXPECT_EQ(runs, 3);
}

class CountingHook : public torch::autograd::FunctionPostHook {
 public:
  explicit CountingHook(int& count) : count_(count) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    ++count_;
    return outputs;
  }

 private:
  int& count_;
};

TEST(Recompute, AWeightOfTwoSegmentsFiresItsAccumulationHookOnce) {
  const Tensor weight = torch::randn({3, 3}, torch::kFloat64).requires_grad_();
  int fired = 0;
  const auto accumulator = torch::autograd::impl::grad_accumulator(weight);
  accumulator->add_post_hook(std::make_unique<CountingHook>(fired));
  const Tensor input = torch::randn({2, 3}, torch::kFloat64).requires_grad_();
  const Segment segment = [weight](const std::vector<Tensor>& given) {
    return dropout(torch::mm(given[0], weight).tanh(), 0.25);
  };
  torch::manual_seed(1);
  recompute(segment, {recompute(segment, {input}, {weight})}, {weight}).sum().backward();
  EXPECT_EQ(fired, 1);
  const Tensor weight_gradient = weight.grad().clone(), input_gradient = input.grad().clone();

  weight.mutable_grad() = input.mutable_grad() = Tensor();
  torch::manual_seed(1);
  segment({segment({input})}).sum().backward();
  EXPECT_TRUE(weight.grad().equal(weight_gradient));
  EXPECT_TRUE(input.grad().equal(input_gradient));
}

TEST(Recompute, InputsThatNeedNoGradientGetNone) {
  const Tensor fixed = torch::randn({3}), free = torch::randn({3}).requires_grad_();
  recompute([](const std::vector<Tensor>& given) { return given[0] * given[1]; }, {fixed, free}, {})
      .sum()
      .backward();
  EXPECT_TRUE(free.grad().equal(fixed));
  EXPECT_FALSE(fixed.grad().defined());
}

}  // namespace
}  // namespace tupelo::recompute_test
