#include <gtest/gtest.h>
#include <torch/types.h>

#include <memory>
#include <string>

#include "model/embeddings.h"
#include "model/encoder.h"
#include "model/roberta.h"
#include "tests/support/refvec.h"

namespace tupelo {
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

INSTANTIATE_TEST_SUITE_P(Precisions, RefvecRoberta,
                         testing::Values(torch::kFloat64, torch::kFloat32), [](const auto& tested) {
                           return tested.param == torch::kFloat64 ? "Float64" : "Float32";
                         });

}  // namespace
}  // namespace tupelo
