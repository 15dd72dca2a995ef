#include "launcher/model_parameters.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace tupelo::model_parameters_test {
namespace {

RobertaForMaskedLm tiny_model() {
  ModelOptions options;
  options.vocab_size = 20;
  options.hidden_size = 8;
  options.layers = 3;
  options.heads = 2;
  options.intermediate_size = 8;
  options.max_positions = 10;
  options.position = "0:none,1:tupe-r,2:tupe-full(pos_dim=8)";
  return RobertaForMaskedLm(options);
}

// Learning-rate multiplier and weight decay by parameter name, which must be in one group only.
std::map<std::string, std::pair<double, double>> settings(const UpdateOptions& options) {
  std::map<std::string, std::pair<double, double>> found;
  const RobertaForMaskedLm model = tiny_model();
  for (const ParameterGroup& group : parameter_groups(model, options, 7)) {
    for (const NamedParameter& parameter : group.parameters) {
      EXPECT_TRUE(found
                      .emplace(parameter.name,
                               std::pair(group.learning_rate_multiplier, group.weight_decay))
                      .second)
          << parameter.name;
    }
  }
  EXPECT_EQ(found.size(), model.named_parameters().size());
  return found;
}

TEST(ModelParameters, AutoFollowsEachEncoding) {
  UpdateOptions options;
  options.weight_decay = 0.1;
  options.position_weight_decay = 0.3;
  const auto found = settings(options);
  EXPECT_EQ(found.at("roberta.embeddings.word_embeddings.weight"), std::pair(1.0, 0.1));
  EXPECT_EQ(found.at("roberta.embeddings.position_embeddings.weight"), std::pair(1.0, 0.3));
  EXPECT_EQ(found.at("roberta.encoder.layer.0.output.LayerNorm.weight"), std::pair(1.0, 0.0));
  EXPECT_EQ(found.at("roberta.position.0.pos.weight"), std::pair(1.0, 0.3));
  EXPECT_EQ(found.at("roberta.position.0.pos_ln.weight"), std::pair(1.0, 0.0));
  EXPECT_EQ(found.at("roberta.position.1.pos.weight"), std::pair(0.2, 0.3));
  EXPECT_EQ(found.at("roberta.position.1.rel_pos_bias.weight"), std::pair(0.2, 0.0));
}

TEST(ModelParameters, OnlyPositionParametersStandStill) {
  const RobertaForMaskedLm model = tiny_model();
  for (const ParameterGroup& group : parameter_groups(model, {}, 7)) {
    const bool position = group.name.find("position") == 0;
    EXPECT_EQ(group.frozen_until_step, position ? 7 : 0) << group.name;
  }
}

TEST(ModelParameters, ANumberHoldsForAllPositionParameters) {
  UpdateOptions options;
  options.position_lr_multiplier = "0.5";
  for (const auto& [name, setting] : settings(options)) {
    const bool position = name.find("roberta.position.") == 0 ||
                          name.find("position_embeddings") != std::string::npos;
    EXPECT_EQ(setting.first, position ? 0.5 : 1.0) << name;
  }
}

// What has nothing to act on is not passed over in silence.
TEST(ModelParameters, SettingsOfPositionsNeedPositionParameters) {
  ModelOptions shape = tiny_model().options();
  shape.position = "all:alibi";
  shape.input_position = "none";
  const RobertaForMaskedLm model(shape);
  EXPECT_NO_THROW(parameter_groups(model, {}, 0));
  UpdateOptions frozen, scaled, late;
  frozen.positions = "freeze";
  scaled.position_lr_multiplier = "0.5";
  late.position_frozen_steps = "2e";
  for (const UpdateOptions& options : {frozen, scaled, late}) {
    EXPECT_THROW(parameter_groups(model, options, 0), std::invalid_argument);
    EXPECT_NO_THROW(parameter_groups(tiny_model(), options, 0));
  }
}

TEST(ModelParameters, LayersBelowLearnSlower) {
  UpdateOptions options;
  options.layer_decay = 0.5;
  const auto found = settings(options);
  EXPECT_EQ(found.at("lm_head.dense.weight").first, 1.0);
  EXPECT_EQ(found.at("lm_head.bias").first, 1.0);
  EXPECT_EQ(found.at("roberta.encoder.layer.2.output.dense.weight").first, 0.5);
  EXPECT_EQ(found.at("roberta.encoder.layer.1.output.LayerNorm.bias").first, 0.25);
  EXPECT_EQ(found.at("roberta.encoder.layer.0.output.dense.weight").first, 0.125);
  EXPECT_EQ(found.at("roberta.embeddings.word_embeddings.weight").first, 0.0625);
  EXPECT_EQ(found.at("roberta.embeddings.position_embeddings.weight").first, 0.0625);
  // Encodings of layers 1 and 2, the second of which recommends 0.2.
  EXPECT_EQ(found.at("roberta.position.0.pos.weight").first, 0.25);
  EXPECT_EQ(found.at("roberta.position.1.pos.weight").first, 0.2 * 0.5);
  options.position_lr_multiplier = "0.5";
  EXPECT_EQ(settings(options).at("roberta.position.1.pos.weight").first, 0.25);
  EXPECT_EQ(settings(options).at("roberta.encoder.layer.2.output.dense.weight").first, 0.5);
}

TEST(ModelParameters, AnEncodingIsWhereItsFirstLayerIs) {
  ModelOptions model;
  model.vocab_size = 20;
  model.hidden_size = 8;
  model.layers = 4;
  model.heads = 2;
  model.intermediate_size = 8;
  model.max_positions = 10;
  model.position = "0:none,1-3:tupe-r";
  UpdateOptions options;
  options.layer_decay = 0.5;
  bool seen = false;
  for (const ParameterGroup& group : parameter_groups(RobertaForMaskedLm(model), options, 0)) {
    for (const NamedParameter& parameter : group.parameters) {
      if (parameter.name != "roberta.position.0.pos.weight") continue;
      seen = true;
      EXPECT_EQ(group.learning_rate_multiplier, 0.125);
    }
  }
  EXPECT_TRUE(seen);
}

TEST(ModelParameters, MatricesOfLayersAreHiddenForMuonAlone) {
  UpdateOptions options;
  for (const char* optimizer : {"muon", "adamw"}) {
    options.optimizer.name = optimizer;
    std::set<std::string> hidden;
    for (const ParameterGroup& group : parameter_groups(tiny_model(), options, 0)) {
      if (!group.hidden_matrices) continue;
      EXPECT_EQ(group.name, "decayed");
      for (const NamedParameter& parameter : group.parameters) hidden.insert(parameter.name);
    }
    if (options.optimizer.name == "adamw") {
      EXPECT_TRUE(hidden.empty());
      continue;
    }
    EXPECT_EQ(hidden.size(), 3u * 6u);  // query, key, value, output, up and down of each layer
    EXPECT_TRUE(hidden.count("roberta.encoder.layer.0.attention.self.query.weight"));
    EXPECT_FALSE(hidden.count("roberta.position.0.pos_q_linear.weight"));
    EXPECT_FALSE(hidden.count("lm_head.dense.weight"));
  }
}

TEST(ModelParameters, WhatMuonLeavesHasARateOfItsOwn) {
  UpdateOptions options;
  options.optimizer.name = "muon";
  options.schedule.peak = 0.5;
  options.adamw_learning_rate = "0.125";
  options.layer_decay = 0.5;
  const auto found = settings(options);
  EXPECT_EQ(found.at("roberta.encoder.layer.2.output.dense.weight").first, 0.5);
  EXPECT_EQ(found.at("roberta.encoder.layer.2.output.dense.bias").first, 0.125);
  EXPECT_EQ(found.at("lm_head.dense.weight").first, 0.25);
  EXPECT_EQ(found.at("roberta.embeddings.word_embeddings.weight").first, 0.25 * 0.0625);
  options.adamw_learning_rate = "auto";
  EXPECT_EQ(settings(options).at("lm_head.dense.weight").first, 1.0);
}

}  // namespace
}  // namespace tupelo::model_parameters_test
