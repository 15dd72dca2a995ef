#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/embeddings.h"
#include "model/encoder.h"
#include "model/roberta.h"
#include "tests/support/refvec.h"

namespace tupelo::refvec_roberta_test {
namespace {

using torch::Tensor;

class RefvecRoberta : public testing::TestWithParam<torch::ScalarType> {};

void copy_parameters(const Refvec& vectors, torch::nn::Module& module) {
  module.to(vectors.precision());
  torch::NoGradGuard no_grad;
  auto parameters = module.named_parameters();
  EXPECT_EQ(parameters.size(), vectors.names_after("param.").size());
  for (const std::string& name : vectors.names_after("param.")) {
    ASSERT_NE(parameters.find(name), nullptr) << name;
    const Tensor value = vectors.tensor("param." + name);
    ASSERT_EQ(parameters[name].sizes(), value.sizes()) << name;
    parameters[name].copy_(value);
  }
}

void expect_gradients(const Refvec& vectors, const torch::nn::Module& module) {
  for (const auto& parameter : module.named_parameters()) {
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    EXPECT_TRUE(vectors.compare("grad." + parameter.key(), parameter.value().grad()));
  }
}

TEST_P(RefvecRoberta, LayerMatchesForwardAndBackward) {
  const Refvec vectors = Refvec::load("roberta_layer", GetParam());
  EncoderOptions options;
  options.hidden_size = vectors.integer("dim");
  options.heads = vectors.integer("heads");
  options.intermediate_size = vectors.integer("inter");
  options.layer_norm_epsilon = vectors.number("eps");
  const auto layer = std::make_shared<EncoderLayer>(options, ContentBiases());
  copy_parameters(vectors, *layer);

  const Tensor input = vectors.tensor("in.x").clone().requires_grad_();
  const Tensor mask = vectors.tensor("in.mask").to(torch::kBool);
  const Tensor visible = mask.unsqueeze(-1);
  const AttentionTerms terms = plain_attention_terms(options.hidden_size / options.heads);
  const TokenLayout layout = TokenLayout::rows(input, mask);
  const Tensor output = layer->forward(input, {}, terms, layout) * visible;
  EXPECT_TRUE(vectors.compare("out.y", output));
  const auto attention =
      std::dynamic_pointer_cast<SelfAttention>(layer->named_modules()["attention"]);
  ASSERT_NE(attention, nullptr);
  EXPECT_TRUE(vectors.compare("out.attn_ln",
                              attention->forward(input, {}, terms, layout, nullptr) * visible));

  const Tensor loss = (output * vectors.tensor("cot.y")).sum();
  EXPECT_TRUE(vectors.compare("out.loss", loss.view({1})));
  loss.backward();
  EXPECT_TRUE(vectors.compare("grad.x", input.grad()));
  expect_gradients(vectors, *layer);
}

ModelOptions masked_lm_options(const Refvec& vectors) {
  ModelOptions options;
  options.vocab_size = vectors.integer("vocab");
  options.hidden_size = vectors.integer("dim");
  options.layers = vectors.integer("layers");
  options.heads = vectors.integer("heads");
  options.intermediate_size = vectors.integer("inter");
  options.pad_id = vectors.integer("pad");
  options.max_positions = vectors.integer("max_pos") - options.pad_id - 1;
  options.layer_norm_epsilon = vectors.number("eps");
  options.dropout = options.attention_dropout = 0.0;
  return options;
}

TEST_P(RefvecRoberta, HiddenStatesAndLogitsMatch) {
  const Refvec vectors = Refvec::load("roberta_mlm", GetParam());
  const auto model = std::make_shared<RobertaForMaskedLm>(masked_lm_options(vectors));
  copy_parameters(vectors, *model);
  const Tensor ids = vectors.tensor("in.input_ids");
  const Tensor mask = vectors.tensor("in.attention_mask").to(torch::kBool);
  const Tensor visible = mask.unsqueeze(-1);
  const auto modules = model->named_modules();

  const TokenLayout layout = TokenLayout::rows(ids, mask);
  Tensor hidden =
      std::dynamic_pointer_cast<Embeddings>(modules["roberta.embeddings"])->forward(ids, layout);
  EXPECT_TRUE(vectors.compare("out.hidden.0", hidden * visible));
  const auto& options = model->options();
  const AttentionTerms terms = plain_attention_terms(options.hidden_size / options.heads);
  for (std::int64_t n = 0; n < options.layers; ++n) {
    const std::string name = "roberta.encoder.layer." + std::to_string(n);
    hidden =
        std::dynamic_pointer_cast<EncoderLayer>(modules[name])->forward(hidden, {}, terms, layout);
    EXPECT_TRUE(vectors.compare("out.hidden." + std::to_string(n + 1), hidden * visible));
  }
  EXPECT_TRUE(model->hidden_states(ids, mask).equal(hidden));
  EXPECT_TRUE(vectors.compare("out.logits", model->logits(hidden) * visible));
}

TEST_P(RefvecRoberta, MaskedLossAndAllGradientsMatch) {
  const Refvec vectors = Refvec::load("roberta_mlm", GetParam());
  for (const std::string recompute : {"none", "all"}) {
    ModelOptions options = masked_lm_options(vectors);
    options.recompute = recompute;
    RobertaForMaskedLm model(options);
    copy_parameters(vectors, model);
    const Tensor labels = vectors.tensor("in.labels").flatten();
    const Tensor masked = labels.ne(-100).nonzero().squeeze(-1);
    const MaskedLmOutput output = model.masked_lm_loss(
        vectors.tensor("in.input_ids"), vectors.tensor("in.attention_mask").to(torch::kBool),
        masked, labels.index_select(0, masked));
    const Tensor mean = output.loss_sum / masked.size(0);
    EXPECT_TRUE(vectors.compare("out.loss", mean.view({1})));
    mean.backward();
    expect_gradients(vectors, model);
  }
}

// Names in the file of mixed_stack by the names that a model gives its parameters. Groups are
// numbered by their first layer.
std::string mixed_stack_name(const std::string& parameter) {
  const std::pair<std::string, std::string> prefixes[] = {
      {"roberta.embeddings.word_embeddings.", "embeddings.word."},
      {"roberta.embeddings.position_embeddings.", "embeddings.position."},
      {"roberta.embeddings.", "embeddings."},
      {"roberta.encoder.", ""},
      {"roberta.position.0.", "tupe."},
      {"lm_head.", "lm_head."}};
  if (parameter == "roberta.position.2.relative_attention_bias.weight") return "t5.table";
  for (const auto& [ours, theirs] : prefixes) {
    if (parameter.rfind(ours, 0) == 0) return theirs + parameter.substr(ours.size());
  }
  return parameter;
}

// "0:none,1+3:tupe-r(...),2:rope,..." for the file's list of kinds, equal kinds in one group.
std::string mixed_stack_plan(const Refvec& vectors) {
  const std::string buckets = "(rel_bins=" + std::to_string(vectors.integer("rel_bins")) +
                              ",max_distance=" + std::to_string(vectors.integer("max_distance")) +
                              ")";
  std::vector<std::pair<std::string, std::string>> entries;  // kind, layers
  const std::vector<std::string> stack = vectors.config()["stack"];
  std::int64_t layer = 0;
  for (const std::string& kind : stack) {
    const std::string number = std::to_string(layer++);
    const auto same = std::find_if(entries.begin(), entries.end(),
                                   [&](const auto& entry) { return entry.first == kind; });
    if (same == entries.end()) {
      entries.emplace_back(kind, number);
    } else {
      same->second += "+" + number;
    }
  }
  std::string plan;
  for (const auto& [kind, layers] : entries) {
    plan += (plan.empty() ? "" : ",") + layers + ":" + kind;
    if (kind == "tupe-r" || kind == "t5") plan += buckets;
  }
  return plan;
}

// Keeps what every layer attends with.
class LayerOutputs : public AttentionObserver {
 public:
  void enter_layer(std::int64_t layer) override { layers.push_back(layer); }
  void attend(const AttentionCall& call) override { terms.push_back(call.terms); }

  std::vector<std::int64_t> layers;
  std::vector<AttentionTerms> terms;
};

TEST_P(RefvecRoberta, StackOfSixKindsOfLayers) {
  const Refvec vectors = Refvec::load("mixed_stack", GetParam());
  ModelOptions options;
  options.vocab_size = vectors.integer("vocab");
  options.hidden_size = vectors.integer("dim");
  options.layers = static_cast<std::int64_t>(vectors.config()["stack"].size());
  options.heads = vectors.integer("heads");
  options.intermediate_size = vectors.integer("inter");
  options.pad_id = vectors.integer("pad");
  options.max_positions = vectors.integer("max_pos");
  options.layer_norm_epsilon = vectors.number("eps");
  options.dropout = options.attention_dropout = 0.0;
  options.position = mixed_stack_plan(vectors);
  // The file's input table has max_pos rows with the reserved ones among them: one of ours with as
  // many tokens has more, which nothing reads.
  const auto owner = std::make_shared<RobertaForMaskedLm>(options);
  RobertaForMaskedLm& model = *owner;
  model.to(GetParam());
  {
    torch::NoGradGuard no_grad;
    for (auto& parameter : model.named_parameters()) {
      const std::string name = mixed_stack_name(parameter.key());
      if (name == "embeddings.token_type_embeddings.weight") {
        parameter.value().zero_();
      } else if (name == "embeddings.position.weight") {
        const Tensor rows = vectors.tensor("param." + name);
        parameter.value().narrow(0, 0, rows.size(0)).copy_(rows);
      } else {
        parameter.value().copy_(vectors.tensor("param." + name));
      }
    }
  }
  const Tensor ids = vectors.tensor("in.input_ids");
  const Tensor mask = vectors.tensor("in.attention_mask").to(torch::kBool);
  const Tensor visible = mask.unsqueeze(-1);
  LayerOutputs seen;
  model.observe(&seen);
  const Tensor hidden = model.hidden_states(ids, mask);
  model.observe(nullptr);
  EXPECT_TRUE(vectors.compare("out.hidden." + std::to_string(options.layers), hidden * visible));
  EXPECT_TRUE(vectors.compare("out.logits", model.logits(hidden) * visible));
  ASSERT_EQ(seen.layers.size(), static_cast<std::size_t>(options.layers));
  EXPECT_TRUE(vectors.compare("out.tupe.bias", seen.terms[1].bias));

  const auto modules = model.named_modules();
  const TokenLayout layout = TokenLayout::rows(ids, mask);
  Tensor state =
      std::dynamic_pointer_cast<Embeddings>(modules["roberta.embeddings"])->forward(ids, layout);
  const auto terms = model.terms_of_layers(layout.longest());
  for (std::size_t n = 0; n < terms.size(); ++n) {
    const auto layer = std::dynamic_pointer_cast<EncoderLayer>(
        modules["roberta.encoder.layer." + std::to_string(n)]);
    state = layer->forward(state, {}, terms[n], layout);
    EXPECT_TRUE(vectors.compare("out.hidden." + std::to_string(n + 1), state * visible));
  }

  const Tensor labels = vectors.tensor("in.labels").flatten();
  const Tensor masked = labels.ne(-100).nonzero().squeeze(-1);
  const Tensor mean =
      model.masked_lm_loss(ids, mask, masked, labels.index_select(0, masked)).loss_sum /
      masked.size(0);
  EXPECT_TRUE(vectors.compare("out.loss", mean.view({1})));
  mean.backward();
  std::size_t compared = 0;
  for (const auto& parameter : model.named_parameters()) {
    const std::string name = mixed_stack_name(parameter.key());
    if (!vectors.has("grad." + name)) continue;
    Tensor gradient = parameter.value().grad();
    if (name == "embeddings.position.weight") {
      gradient = gradient.narrow(0, 0, vectors.tensor("param." + name).size(0));
    }
    EXPECT_TRUE(vectors.compare("grad." + name, gradient));
    ++compared;
  }
  EXPECT_EQ(compared, vectors.keys("param.").size());
}

INSTANTIATE_TEST_SUITE_P(Precisions, RefvecRoberta,
                         testing::Values(torch::kFloat64, torch::kFloat32), [](const auto& tested) {
                           return tested.param == torch::kFloat64 ? "Float64" : "Float32";
                         });

}  // namespace
}  // namespace tupelo::refvec_roberta_test
