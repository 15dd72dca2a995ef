#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>

#include "model/roberta.h"
#include "tests/model/formulas.h"
#include "tests/model/tiny_model.h"

namespace tupelo::masked_lm_test {
namespace {

using torch::Tensor;

class MaskedLm : public testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(23); }
};

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

// RoBERTa written out with LibTorch's operators alone, for ids without padding. With decoder steps,
// the last layer is the enhanced mask decoder's: applied so often, keys and values from the layer
// below.
Tensor plain_roberta(RobertaForMaskedLm& model, const Tensor& ids, int decoder_steps = 0) {
  const auto parameters = model.named_parameters();
  const ModelOptions& options = model.options();
  const auto get = [&](const std::string& name) { return parameters[name]; };
  const auto linear = [&](const Tensor& input, const std::string& name) {
    return torch::linear(input, get(name + ".weight"), get(name + ".bias"));
  };
  const auto norm = [&](const Tensor& input, const std::string& name) {
    return torch::layer_norm(input, {options.hidden_size}, get(name + ".weight"),
                             get(name + ".bias"), options.layer_norm_epsilon);
  };
  const std::string embeddings = "roberta.embeddings.";
  const Tensor positions = torch::arange(ids.size(1)) + options.pad_id + 1;
  Tensor hidden = get(embeddings + "word_embeddings.weight").index({ids}) +
                  get(embeddings + "token_type_embeddings.weight")[0] +
                  get(embeddings + "position_embeddings.weight").index({positions});
  hidden = norm(hidden, embeddings + "LayerNorm");
  const std::int64_t width = options.hidden_size / options.heads;
  const auto apply = [&](std::int64_t n, const Tensor& input, const Tensor& memory) {
    const std::string layer = "roberta.encoder.layer." + std::to_string(n) + ".";
    const auto heads = [&](const Tensor& from, const std::string& name) {
      return linear(from, layer + "attention.self." + name)
          .view({ids.size(0), ids.size(1), options.heads, width})
          .transpose(1, 2)
          .flatten(0, 1);
    };
    const Tensor query = heads(input, "query");
    const Tensor key = heads(memory, "key"), value = heads(memory, "value");
    const Tensor scores = torch::baddbmm(torch::zeros({1, 1, 1}, query.options()), query,
                                         key.transpose(1, 2), 0.0, 1.0 / std::sqrt(1.0 * width));
    const Tensor context = torch::bmm(torch::softmax(scores, -1), value)
                               .view({ids.size(0), options.heads, ids.size(1), width})
                               .transpose(1, 2)
                               .flatten(2);
    const Tensor attended = norm(input + linear(context, layer + "attention.output.dense"),
                                 layer + "attention.output.LayerNorm");
    const Tensor wide = torch::gelu(linear(attended, layer + "intermediate.dense"));
    return norm(attended + linear(wide, layer + "output.dense"), layer + "output.LayerNorm");
  };
  const std::int64_t plain_layers = options.layers - (decoder_steps > 0 ? 1 : 0);
  for (std::int64_t n = 0; n < plain_layers; ++n) hidden = apply(n, hidden, hidden);
  if (decoder_steps == 0) return hidden;
  const Tensor memory = hidden;
  hidden =
      memory + get("roberta.mask_decoder.position_embeddings.weight").narrow(0, 0, ids.size(1));
  for (int step = 0; step < decoder_steps; ++step) hidden = apply(plain_layers, hidden, memory);
  return hidden;
}

TEST_F(MaskedLm, StackWithoutEncodingsIsRobertaBitForBit) {
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    const auto model = tiny_model(tiny_options("all:none", 3), type);
    const TinyBatch batch(3, 11);
    EXPECT_TRUE(
        model->hidden_states(batch.input_ids, {}).equal(plain_roberta(*model, batch.input_ids)));
  }
}

TEST_F(MaskedLm, MaskDecoderAppliesTheLastLayerToPositionsInFrontOfIt) {
  for (const int steps : {1, 2, 3}) {
    ModelOptions options = tiny_options("all:none", 3);
    options.mask_decoder = "emd(steps=" + std::to_string(steps) + ")";
    const auto model = tiny_model(options);
    const TinyBatch batch(3, 11);
    const Tensor found = model->hidden_states(batch.input_ids, {});
    const Tensor expected = plain_roberta(*model, batch.input_ids, steps);
    EXPECT_LT((found - expected).abs().max().item<double>(), 1e-12);
    // It is not the plain stack, and each step counts.
    EXPECT_GT((found - plain_roberta(*model, batch.input_ids)).abs().max().item<double>(), 1e-3);
    const Tensor more = plain_roberta(*model, batch.input_ids, steps + 1);
    EXPECT_GT((found - more).abs().max().item<double>(), 1e-4);
  }
}

TEST_F(MaskedLm, LossIsTheSumOverMaskedTokens) {
  const auto model = tiny_model(tiny_options("0:none,1:tupe-r"));
  TinyBatch batch(3, 8);
  batch.pad(3);
  const MaskedLmOutput output = model->masked_lm_loss(batch.input_ids, batch.attention_mask,
                                                      batch.masked_positions, batch.labels);
  const Tensor rows = model->hidden_states(batch.input_ids, batch.attention_mask)
                          .view({-1, 12})
                          .index_select(0, batch.masked_positions);
  const Tensor logits = model->logits(rows);
  const Tensor chosen = torch::log_softmax(logits, -1).gather(1, batch.labels.unsqueeze(1));
  EXPECT_NEAR(output.loss_sum.item<double>(), -chosen.sum().item<double>(), 1e-12);
  EXPECT_EQ(output.correct.item<std::int64_t>(),
            logits.argmax(-1).eq(batch.labels).sum().item<std::int64_t>());
  EXPECT_EQ(output.correct.scalar_type(), torch::kInt64);
}

TEST_F(MaskedLm, NoMaskedTokensGiveAConnectedZero) {
  const auto model = tiny_model(tiny_options("all:tupe-full"));
  const TinyBatch batch(2, 6);
  const Tensor none = torch::empty({0}, torch::kInt64);
  const MaskedLmOutput output = model->masked_lm_loss(batch.input_ids, {}, none, none);
  EXPECT_EQ(output.loss_sum.item<double>(), 0.0);
  EXPECT_EQ(output.correct.item<std::int64_t>(), 0);
  output.loss_sum.backward();
  for (const auto& parameter : model->named_parameters()) {
    const Tensor gradient = parameter.value().grad();
    ASSERT_TRUE(gradient.defined()) << parameter.key();
    EXPECT_EQ(gradient.abs().max().item<double>(), 0.0) << parameter.key();
  }
}

TEST_F(MaskedLm, HalfPrecisionLossIsFloat32) {
  const auto model = tiny_model(tiny_options("0:tupe-r,1:tupe-full"), torch::kBFloat16);
  TinyBatch batch(3, 8);
  batch.pad(3);
  const Tensor loss = batch.loss(*model);
  EXPECT_EQ(loss.scalar_type(), torch::kFloat32);
  loss.backward();
  model->to(torch::kFloat64);
  EXPECT_NEAR(loss.item<double>() / batch.loss(*model).item<double>(), 1.0, 0.02);
}

const std::vector<std::string> kPlans = {"all:none", "all:tupe-a", "all:tupe-a(fold=concat)",
                                         "0:none,1:tupe-r", "all:tupe-full(pp=both)"};

TEST_F(MaskedLm, ContentOfPaddingChangesNothing) {
  for (const std::string& plan : kPlans) {
    const auto model = tiny_model(tiny_options(plan));
    TinyBatch batch(3, 9);
    batch.pad(4);
    // Learned input positions count by padding id, so there padding must keep it.
    if (model->options().input_position == "learned") continue;
    const Tensor before = model->hidden_states(batch.input_ids, batch.attention_mask);
    const Tensor loss = batch.loss(*model);
    batch.input_ids = torch::where(batch.attention_mask, batch.input_ids,
                                   torch::randint(2, 31, {3, 9}, torch::kInt64));
    const Tensor after = model->hidden_states(batch.input_ids, batch.attention_mask);
    const Tensor visible = batch.attention_mask.unsqueeze(-1);
    EXPECT_TRUE((before * visible).equal(after * visible)) << plan;
    EXPECT_TRUE(loss.equal(batch.loss(*model))) << plan;
  }
}

TEST_F(MaskedLm, PaddedRowEqualsTheRowAlone) {
  for (const std::string& plan : kPlans) {
    const auto model = tiny_model(tiny_options(plan));
    TinyBatch batch(2, 9);
    batch.pad(4);
    batch.input_ids[0].narrow(0, 0, 5).copy_(batch.input_ids[1].narrow(0, 0, 5));
    const Tensor together = model->hidden_states(batch.input_ids, batch.attention_mask);
    const Tensor alone = model->hidden_states(batch.input_ids.narrow(0, 1, 1).narrow(1, 0, 5), {});
    EXPECT_TRUE(near(together[1].narrow(0, 0, 5), alone[0], 1e-12)) << plan;
  }
}

TEST_F(MaskedLm, EveryLengthUpToTheLongestWorksAndOneMoreIsRefused) {
  for (const std::string& plan : kPlans) {
    const auto model = tiny_model(tiny_options(plan), torch::kFloat32);
    for (const std::int64_t tokens : {1, 3, 16}) {
      const TinyBatch batch(2, tokens);
      EXPECT_TRUE(batch.loss(*model).isfinite().item<bool>()) << plan << " " << tokens;
    }
    const std::string what = refusal([&] { TinyBatch(2, 17).loss(*model); });
    EXPECT_NE(what.find("17 tokens is longer than the 16 positions"), std::string::npos) << what;
  }
}

TEST_F(MaskedLm, SinusoidalInputHasNoLongestSequence) {
  ModelOptions options = tiny_options("all:none");
  options.input_position = "sinusoidal";
  const auto model = tiny_model(options);
  const TinyBatch batch(2, 40);
  const Tensor whole = model->hidden_states(batch.input_ids, {});
  EXPECT_TRUE(whole.isfinite().all().item<bool>());
  const Tensor swapped = model->hidden_states(batch.input_ids.flip(1), {}).flip(1);
  EXPECT_FALSE(near(whole, swapped, 1e-3));
  options.input_position = "sinusoidal(layout=concat)";
  EXPECT_FALSE(near(whole, tiny_model(options)->hidden_states(batch.input_ids, {}), 1e-3));
}

TEST_F(MaskedLm, SharedGroupsAddTheGradientsOfTheirLayers) {
  // One group of two layers against two groups with equal values: its gradient is their sum.
  const auto shared = tiny_model(tiny_options("all:tupe-r"));
  const auto separate = tiny_model(tiny_options("all:tupe-r(share=layer)"));
  torch::NoGradGuard outer_no_grad;
  const auto values = shared->named_parameters();
  for (const auto& parameter : separate->named_parameters()) {
    std::string name = parameter.key();
    const std::string second = "roberta.position.1.";
    if (name.rfind(second, 0) == 0) name.replace(0, second.size(), "roberta.position.0.");
    Tensor(parameter.value()).copy_(values[name]);
  }
  const TinyBatch batch(3, 8);
  {
    torch::AutoGradMode with_grad(true);
    const Tensor loss = batch.loss(*shared);
    EXPECT_TRUE(loss.equal(batch.loss(*separate)));
    loss.backward();
    batch.loss(*separate).backward();
  }
  const auto gradients = gradients_of(*separate);
  for (const auto& [name, gradient] : gradients_of(*shared)) {
    const std::string first = "roberta.position.0.";
    if (name.rfind(first, 0) != 0) continue;
    const std::string rest = name.substr(first.size());
    EXPECT_TRUE(near(
        gradient, gradients.at(first + rest) + gradients.at("roberta.position.1." + rest), 1e-12))
        << rest;
  }
}

TEST_F(MaskedLm, ParameterNamesAreThoseOfCheckpoints) {
  ModelOptions options = tiny_options("0:none,1:tupe-r");
  options.input_position = "learned";
  const RobertaForMaskedLm model(options);
  std::set<std::string> names;
  for (const auto& parameter : model.named_parameters()) names.insert(parameter.key());
  std::set<std::string> expected;
  const auto add = [&](const std::string& prefix, std::initializer_list<const char*> parts) {
    for (const char* part : parts) expected.insert(prefix + part);
  };
  add("roberta.embeddings.",
      {"word_embeddings.weight", "position_embeddings.weight", "token_type_embeddings.weight",
       "LayerNorm.weight", "LayerNorm.bias"});
  for (const std::string layer : {"0", "1"}) {
    add("roberta.encoder.layer." + layer + ".",
        {"attention.self.query.weight", "attention.self.query.bias", "attention.self.key.weight",
         "attention.self.key.bias", "attention.self.value.weight", "attention.self.value.bias",
         "attention.output.dense.weight", "attention.output.dense.bias",
         "attention.output.LayerNorm.weight", "attention.output.LayerNorm.bias",
         "intermediate.dense.weight", "intermediate.dense.bias", "output.dense.weight",
         "output.dense.bias", "output.LayerNorm.weight", "output.LayerNorm.bias"});
  }
  add("roberta.position.0.",
      {"pos.weight", "pos_ln.weight", "pos_ln.bias", "pos_q_linear.weight", "pos_q_linear.bias",
       "pos_k_linear.weight", "pos_k_linear.bias", "relative_attention_bias.weight"});
  add("lm_head.", {"bias", "dense.weight", "dense.bias", "layer_norm.weight", "layer_norm.bias"});
  EXPECT_EQ(names, expected);
}

TEST_F(MaskedLm, RolesPartitionTheParameters) {
  ModelOptions options = tiny_options("0:tupe-r,1:tupe-full(temperature=per-head,cls_untie=true)");
  options.input_position = "learned";
  const RobertaForMaskedLm model(options);
  const auto roles = model.parameter_roles();
  std::vector<std::string> all;
  for (const auto* list :
       {&roles.decayed, &roles.undecayed, &roles.position_decayed, &roles.position_undecayed}) {
    all.insert(all.end(), list->begin(), list->end());
  }
  EXPECT_EQ(all.size(), std::set<std::string>(all.begin(), all.end()).size());
  EXPECT_EQ(all.size(), model.named_parameters().size());
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  EXPECT_TRUE(has(roles.decayed, "roberta.embeddings.word_embeddings.weight"));
  EXPECT_TRUE(has(roles.decayed, "roberta.encoder.layer.0.attention.self.query.weight"));
  EXPECT_TRUE(has(roles.undecayed, "roberta.encoder.layer.0.output.LayerNorm.weight"));
  EXPECT_TRUE(has(roles.undecayed, "lm_head.bias"));
  EXPECT_TRUE(has(roles.position_decayed, "roberta.embeddings.position_embeddings.weight"));
  EXPECT_TRUE(has(roles.position_decayed, "roberta.position.0.pos.weight"));
  EXPECT_TRUE(has(roles.position_decayed, "roberta.position.1.q_pos.weight"));
  EXPECT_TRUE(has(roles.position_undecayed, "roberta.position.0.relative_attention_bias.weight"));
  EXPECT_TRUE(has(roles.position_undecayed, "roberta.position.0.pos_ln.weight"));
  EXPECT_TRUE(has(roles.position_undecayed, "roberta.position.1.rel_pos_bias.weight"));
  EXPECT_TRUE(has(roles.position_undecayed, "roberta.position.1.temperature"));
  EXPECT_TRUE(has(roles.position_undecayed, "roberta.position.1.cls_bias"));
}

TEST_F(MaskedLm, DropoutRunsInTrainingOnlyAndFollowsTheSeed) {
  ModelOptions options = tiny_options("all:tupe-r");
  options.dropout = options.attention_dropout = 0.2;
  const auto model = tiny_model(options);
  const TinyBatch batch(3, 8);
  torch::manual_seed(1);
  const Tensor first = batch.loss(*model), second = batch.loss(*model);
  torch::manual_seed(1);
  EXPECT_TRUE(batch.loss(*model).equal(first));
  EXPECT_FALSE(first.equal(second));
  model->eval();
  EXPECT_TRUE(batch.loss(*model).equal(batch.loss(*model)));
}

TEST_F(MaskedLm, OptionsAreChecked) {
  const auto refused = [](const std::function<void(ModelOptions&)>& change) {
    ModelOptions options = tiny_options("all:tupe-r");
    change(options);
    return refusal([&] { RobertaForMaskedLm{options}; });
  };
  const auto expect = [](const std::string& what, const std::string& part) {
    EXPECT_NE(what.find(part), std::string::npos) << what;
  };
  expect(refused([](auto& o) { o.heads = 5; }), "heads=5 must divide hidden-size=12");
  expect(refused([](auto& o) { o.vocab_size = 0; }), "vocab-size=0 must be at least 1");
  expect(refused([](auto& o) { o.pad_id = 31; }), "pad_id=31 must be an id of the vocabulary");
  expect(refused([](auto& o) { o.dropout = 1.0; }), "dropout=1.000000 must be in [0, 1)");
  expect(refused([](auto& o) { o.position = "all:none"; }), "no position information anywhere");
  expect(refused([](auto& o) { o.position = "all:tupe-x"; }), "did you mean 'tupe-a'");
  expect(refused([](auto& o) { o.input_position = "learnt"; }), "did you mean 'learned'");
  expect(refused([](auto& o) { o.input_position = "sinusoidal(layout=up)"; }),
         "interleaved|concat|t2t");
  expect(refused([](auto& o) { o.recompute = "5"; }), "recompute: layer 5 does not exist");
}

TEST_F(MaskedLm, ArticlePositionsAskForASmallerLearningRate) {
  const auto multiplier = [](const std::string& plan) {
    return RobertaForMaskedLm(tiny_options(plan)).position_learning_rate_multiplier();
  };
  EXPECT_EQ(multiplier("all:none"), 1.0);
  EXPECT_EQ(multiplier("all:tupe-r"), 1.0);
  EXPECT_EQ(multiplier("0:tupe-r,1:article"), 0.2);
}

TEST_F(MaskedLm, PlanTextIsCanonical) {
  EXPECT_EQ(RobertaForMaskedLm(tiny_options("1:article(scale=each),0:none")).position_plan(),
            "0:none,1:tupe-full(scale=each)");
}

}  // namespace
}  // namespace tupelo::masked_lm_test
