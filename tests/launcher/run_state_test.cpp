// What a checkpoint says of its run.
#include "launcher/run_state.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "checkpoints/safetensors.h"
#include "launcher/run_config.h"
#include "tests/launcher/messages.h"

namespace tupelo::run_state_test {
namespace {

TEST(RunState, JsonRoundTripsAndNamesWhatIsMissing) {
  RunState state;
  state.config_ini = ConfigBuilder().to_ini(false);
  state.position_plan = "0-11:none";
  state.step = 7;
  state.masks_hash = 0xfedcba9876543210ULL;
  state.corpora = {"zh", "en"};
  state.corpus_digests = {"a1", "b2"};
  state.epochs.resize(2);
  state.epochs[1][3] = {5, 0x8000000000000001ULL};
  const std::string text = to_json(state);
  EXPECT_EQ(to_json(run_state_from_json(text)), text);
  EXPECT_EQ(run_state_from_json(text).epochs.at(1).at(3).hash, 0x8000000000000001ULL);
  EXPECT_TRUE(run_state_from_json(text).epochs.at(0).empty());
  EXPECT_NE(message_of<CorruptCheckpoint>([] {
              run_state_from_json("{\"config\":\"\"}");
            }).find("position_plan"),
            std::string::npos);
  EXPECT_THROW(run_state_from_json("[]"), CorruptCheckpoint);
}

TEST(RunState, WhatARunGoesWithoutSurvives) {
  RunState state;
  state.config_ini = ConfigBuilder().to_ini(false);
  state.corpora = state.corpus_digests = {"zh", "en"};
  state.excluded_shards = {{{"en", "train/a.h5"}, "a.h5: is \"damaged\"", 40, 3, 500},
                           {{"zh", "train/b.h5"}, "b.h5: the file is missing", 70, 1, 9}};
  state.order_start = {70, {3, 5}, 3.0 / 7.0};
  state.next_order = OrderStart{90, {4, 6}, 5.0 / 7.0};
  state.frozen_position_steps = INT64_MAX;
  const std::string text = to_json(state);
  const RunState read = run_state_from_json(text);
  EXPECT_EQ(read.excluded_shards, state.excluded_shards);
  EXPECT_EQ(read.order_start, state.order_start);
  EXPECT_EQ(read.next_order, state.next_order);
  EXPECT_EQ(read.frozen_position_steps, INT64_MAX);

  state.order_start.epochs = {3};
  EXPECT_NE(message_of<CorruptCheckpoint>([&] {
              run_state_from_json(to_json(state));
            }).find("an epoch of each corpus"),
            std::string::npos);
}

TEST(RunState, OnlyWhatDecidesTheResultMustStay) {
  ConfigBuilder builder;
  RunState saved;
  saved.config_ini = builder.to_ini(false);
  RunState current = saved;
  for (const char* name : {"train.steps", "train.micro-batch", "train.save-every"}) {
    builder.set(name, "17", "test");
  }
  current.config_ini = builder.to_ini(false);
  EXPECT_NO_THROW(require_same_run(saved, current));
  builder.set("train.seed", "18", "test");
  current.config_ini = builder.to_ini(false);
  EXPECT_NE(message_of<std::invalid_argument>([&] {
              require_same_run(saved, current);
            }).find("train.seed '1', this run has '18'"),
            std::string::npos);
}

TEST(RunState, TheLawOfMasksMustStay) {
  RunState current;
  current.config_ini = ConfigBuilder().to_ini(false);
  current.corpora = current.corpus_digests = {"zh"};
  std::string text = to_json(current);
  const std::string key = "\"mask_law\": 2,";
  ASSERT_NE(text.find(key), std::string::npos);
  EXPECT_NO_THROW(require_same_run(run_state_from_json(text), current));
  text.erase(text.find(key), key.size());  // as before there was a second law
  EXPECT_EQ(
      message_of<std::invalid_argument>(
          [&] { require_same_run(run_state_from_json(text), current); }),
      "the checkpoint is of a version of tupelo that masks other tokens (law 1, here 2); go on "
      "with that version, or begin another run from its weights with --init-from");
}

TEST(RunState, WhatTheModelComputesMustStay) {
  RunState saved;
  saved.config_ini = ConfigBuilder().to_ini(false);
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"model.input-position", "sinusoidal"},
      {"model.logn", "plain"},
      {"model.logn-length", "77"},
      {"model.mask-decoder", "emd"}};
  for (const auto& [name, value] : changes) {
    ConfigBuilder builder;
    builder.set(name, value, "test");
    RunState current = saved;
    current.config_ini = builder.to_ini(false);
    const std::string message =
        message_of<std::invalid_argument>([&] { require_same_run(saved, current); });
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_NE(message.find("this run has '" + value + "'"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace tupelo::run_state_test
