#include <gtest/gtest.h>
#include <torch/types.h>

#include <map>
#include <set>
#include <string>

#include "model/roberta.h"
#include "tests/model/tiny_model.h"

namespace tupelo::sentence_order_test {
namespace {

using torch::Tensor;
using Gradients = std::map<std::string, Tensor>;

const char* const kHead[] = {"roberta.pooler.dense.weight", "roberta.pooler.dense.bias",
                             "sop_classifier.classifier.weight", "sop_classifier.classifier.bias"};

class SentenceOrder : public testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(5); }
};

ModelOptions options_with_head(const std::string& position = "0:none,1:tupe-r") {
  ModelOptions options = tiny_options(position);
  options.sentence_order_head = true;
  return options;
}

Gradients gradients_of(RobertaForMaskedLm& model, const Tensor& loss) {
  model.zero_grad();
  loss.backward();
  Gradients gradients;
  for (const auto& parameter : model.named_parameters()) {
    EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
    gradients[parameter.key()] = parameter.value().grad().clone();
  }
  return gradients;
}

void expect_near(const Gradients& found, const Gradients& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, gradient] : expected) {
    EXPECT_LT((found.at(name) - gradient).abs().max().item<double>(), 1e-13) << name;
  }
}

// The cross entropy of each chosen row, [P], with LibTorch's operators alone.
Tensor plain_losses(RobertaForMaskedLm& model, const Tensor& hidden, const Tensor& rows,
                    const Tensor& labels) {
  const auto parameters = model.named_parameters();
  const Tensor first = hidden.index({rows, torch::zeros_like(rows)});
  const Tensor pooled =
      torch::tanh(torch::matmul(first, parameters[kHead[0]].t()) + parameters[kHead[1]]);
  const Tensor scores = torch::matmul(pooled, parameters[kHead[2]].t()) + parameters[kHead[3]];
  const Tensor chosen = scores.gather(1, labels.unsqueeze(1)).squeeze(1);
  return torch::logsumexp(scores, 1) - chosen;
}

TEST_F(SentenceOrder, LossAndGradientAreThoseOfThePlainExpression) {
  const auto model = tiny_model(options_with_head());
  TinyBatch batch(5, 9);
  batch.pad(3);
  const Tensor rows = torch::tensor({0, 2, 3}, torch::kInt64);
  const Tensor labels = torch::tensor({1, 0, 1}, torch::kInt64);
  const double masked = static_cast<double>(batch.labels.numel());
  const auto hidden = [&] { return model->hidden_states(batch.input_ids, batch.attention_mask); };

  Tensor states = hidden();
  const SentenceOrderOutput order = model->sentence_order_loss_of(states, rows, labels);
  const MaskedLmOutput words =
      model->masked_lm_loss_of(states, batch.masked_positions, batch.labels);
  EXPECT_TRUE(words.loss_sum.equal(batch.loss(*model)));
  const Gradients found =
      gradients_of(*model, words.loss_sum / masked + (0.7 / 3) * order.loss_sum);

  states = hidden();
  const Tensor losses = plain_losses(*model, states, rows, labels);
  EXPECT_NEAR(order.loss_sum.item<double>(), losses.sum().item<double>(), 1e-12);
  const Tensor scores = model->sentence_order_logits(states.index({rows, 0}));
  EXPECT_EQ(scores.sizes(), (torch::IntArrayRef{3, 2}));
  EXPECT_EQ(order.correct.item<std::int64_t>(),
            scores.argmax(-1).eq(labels).sum().item<std::int64_t>());
  expect_near(found, gradients_of(*model, batch.loss(*model) / masked + 0.7 * losses.mean()));
  for (const char* name : kHead) EXPECT_GT(found.at(name).abs().max().item<double>(), 1e-4);
}

TEST_F(SentenceOrder, PartsOfABatchAddUp) {
  const auto model = tiny_model(options_with_head());
  const TinyBatch batch(6, 8);
  const Tensor rows = torch::tensor({1, 2, 5}, torch::kInt64);
  const Tensor labels = torch::tensor({0, 1, 1}, torch::kInt64);
  const auto loss_of = [&](std::int64_t first, std::int64_t count) {
    const Tensor inside = rows.ge(first).logical_and(rows.lt(first + count));
    const Tensor hidden = model->hidden_states(batch.input_ids.narrow(0, first, count), {});
    return model->sentence_order_loss_of(hidden, rows.masked_select(inside) - first,
                                         labels.masked_select(inside));
  };
  const SentenceOrderOutput whole = loss_of(0, 6);
  Tensor sum = torch::zeros({}, torch::kFloat64);
  std::int64_t correct = 0;
  for (const auto& [first, count] : {std::pair(0, 1), std::pair(1, 3), std::pair(4, 2)}) {
    const SentenceOrderOutput part = loss_of(first, count);
    sum = sum + part.loss_sum;
    correct += part.correct.item<std::int64_t>();
  }
  EXPECT_NEAR(sum.item<double>(), whole.loss_sum.item<double>(), 1e-12);
  EXPECT_EQ(correct, whole.correct.item<std::int64_t>());
}

TEST_F(SentenceOrder, NoPairsGiveAConnectedZero) {
  const auto model = tiny_model(options_with_head());
  const TinyBatch batch(2, 6);
  const Tensor none = torch::empty({0}, torch::kInt64);
  const Tensor hidden = model->hidden_states(batch.input_ids, {});
  const SentenceOrderOutput output = model->sentence_order_loss_of(hidden, none, none);
  EXPECT_EQ(output.loss_sum.item<double>(), 0.0);
  EXPECT_EQ(output.correct.item<std::int64_t>(), 0);
  const MaskedLmOutput words =
      model->masked_lm_loss_of(hidden, batch.masked_positions, batch.labels);
  const Gradients found = gradients_of(*model, words.loss_sum + output.loss_sum);
  for (const char* name : kHead) EXPECT_EQ(found.at(name).abs().max().item<double>(), 0.0);
}

TEST_F(SentenceOrder, TheHeadLeavesAllOtherParametersAlone) {
  const auto with = tiny_model(options_with_head());
  const auto without = tiny_model(tiny_options("0:none,1:tupe-r"));
  const auto others = without->named_parameters();
  const std::set<std::string> head(std::begin(kHead), std::end(kHead));
  std::size_t common = 0;
  for (const auto& parameter : with->named_parameters()) {
    if (head.contains(parameter.key())) {
      EXPECT_FALSE(others.contains(parameter.key()));
    } else {
      ++common;
      EXPECT_TRUE(parameter.value().equal(others[parameter.key()])) << parameter.key();
    }
  }
  EXPECT_EQ(common, others.size());
  EXPECT_EQ(with->named_parameters().size(), common + head.size());
  const auto roles = with->parameter_roles();
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_TRUE(has(roles.decayed, kHead[0]) && has(roles.decayed, kHead[2]));
  EXPECT_TRUE(has(roles.undecayed, kHead[1]) && has(roles.undecayed, kHead[3]));
  const Tensor rows = torch::zeros({1, 12}, torch::kFloat64);
  EXPECT_THROW(without->sentence_order_logits(rows), c10::Error);
}

TEST_F(SentenceOrder, HalfPrecisionLossIsFloat32) {
  const auto model = tiny_model(options_with_head(), torch::kBFloat16);
  const TinyBatch batch(4, 8);
  const Tensor rows = torch::arange(4, torch::kInt64), labels = rows % 2;
  const auto loss = [&] {
    return model->sentence_order_loss_of(model->hidden_states(batch.input_ids, {}), rows, labels)
        .loss_sum;
  };
  const Tensor half = loss();
  EXPECT_EQ(half.scalar_type(), torch::kFloat32);
  model->to(torch::kFloat64);
  EXPECT_NEAR(half.item<double>() / loss().item<double>(), 1.0, 0.05);
}

}  // namespace
}  // namespace tupelo::sentence_order_test
