#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "checkpoints/safetensors.h"
#include "launcher/command_line.h"
#include "launcher/curve_plot.h"
#include "launcher/metrics_log.h"
#include "launcher/nearest_name.h"
#include "launcher/run_config.h"
#include "launcher/run_folder.h"
#include "launcher/run_state.h"
#include "launcher/value_text.h"
#include "model/position/input_encoding.h"
#include "model/position/position_encoding.h"

namespace tupelo::config_test {
namespace {

template <typename Error, typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

TEST(ValueText, IntegersAsPeopleWriteThem) {
  EXPECT_EQ(parse_integer("12", 0, 100), 12);
  EXPECT_EQ(parse_integer("1e6", 0, INT64_MAX), 1000000);
  EXPECT_EQ(parse_integer("4k", 0, INT64_MAX), 4000);
  EXPECT_EQ(parse_integer("4KiB", 0, INT64_MAX), 4096);
  EXPECT_EQ(parse_integer("0.5M", 0, INT64_MAX), 500000);
  EXPECT_EQ(parse_integer("9223372036854775807", 0, INT64_MAX), INT64_MAX);
  for (const char* text : {"", "1.5", "x", "12x", "-1", "101", "1e400", "nan", "0x10", " 1", "k"}) {
    EXPECT_THROW(parse_integer(text, 0, 100), std::invalid_argument) << text;
  }
}

TEST(ValueText, NumbersAndPercentages) {
  EXPECT_EQ(parse_number("0.25", 0, 1), 0.25);
  EXPECT_EQ(parse_number("6%", 0, 1), 0.06);
  EXPECT_EQ(parse_number("1e-4", 0, 1), 1e-4);
  for (const char* text : {"", "%", "inf", "nan", "2", "-0.1", "0.1x", "150%"}) {
    EXPECT_THROW(parse_number(text, 0, 1), std::invalid_argument) << text;
  }
  for (double value : {0.1, 1e-4, 1.0 / 3.0, 5e-324, 1e300}) {
    EXPECT_EQ(parse_number(number_text(value), 0, 1e308), value);
  }
}

TEST(ValueText, DurationsInStepsAndEpochs) {
  const auto expect = [](const std::string& text, double amount, bool in_epochs) {
    const Duration duration = parse_duration(text);
    EXPECT_EQ(duration.amount, amount) << text;
    EXPECT_EQ(duration.in_epochs, in_epochs) << text;
  };
  expect("0", 0, false);
  expect("2000", 2000, false);
  expect("2e3", 2000, false);
  expect("2e", 2, true);
  expect("0.5 epochs", 0.5, true);
  expect("1 epoch", 1, true);
  expect("3epochs", 3, true);
  for (const char* text : {"", "e", "epochs", "-1", "-1e", "1.5", "2 steps", "2 e e", "nan epochs",
                           "1e30 epochs", "0.5  epochs"}) {
    EXPECT_THROW(parse_duration(text), std::invalid_argument) << text;
  }
}

TEST(ValueText, HexadecimalKeepsAllBits) {
  EXPECT_EQ(hex_text(0xfedcba9876543210ULL), "fedcba9876543210");
  EXPECT_EQ(hex_text(1), "0000000000000001");
}

TEST(NearestName, FindsLikelySlipsOnly) {
  const std::vector<std::string> names = {"train.steps", "train.save-every", "model.layers"};
  EXPECT_EQ(nearest_name("train.step", names), "train.steps");
  EXPECT_EQ(nearest_name("layers", names), "model.layers");
  EXPECT_EQ(nearest_name("quux", names), "");
}

TEST(Config, EveryEntryPrintsWhatItParses) {
  for (const ConfigEntry& entry : config_entries()) {
    RunConfig config;
    const std::string value = entry.get(config);
    ASSERT_NO_THROW(entry.set(config, value)) << entry.name << " = " << value;
    EXPECT_EQ(entry.get(config), value) << entry.name;
    EXPECT_FALSE(entry.help.empty()) << entry.name;
  }
}

TEST(Config, IniTextRoundTrips) {
  ConfigBuilder first;
  first.set("model.position", "0-3:none,4-11:tupe-r(share=layer)", "test");
  first.set("optim.learning-rate", "3e-4", "test");
  first.set("data.packing", "doc", "test");
  first.set("model.input-position", "sinusoidal(layout=concat)", "test");
  first.set("model.logn", "clip16", "test");
  first.set("model.logn-length", "128", "test");
  first.set("model.mask-decoder", "emd(steps=1)", "test");
  first.set("model.allow-no-position", "true", "test");
  for (bool origins : {false, true}) {
    ConfigBuilder second;
    second.apply_text(first.to_ini(origins), "text");
    EXPECT_EQ(second.to_ini(false), first.to_ini(false));
    const ModelOptions& model = second.config().model;
    EXPECT_EQ(model.position, "0-3:none,4-11:tupe-r(share=layer)");
    EXPECT_EQ(model.input_position, "sinusoidal(layout=concat)");
    EXPECT_EQ(model.logn, "clip16");
    EXPECT_EQ(model.logn_length, 128);
    EXPECT_EQ(model.mask_decoder, "emd(steps=1)");
    EXPECT_TRUE(model.allow_no_position);
  }
}

TEST(Config, AWeightOfTheOrderLossMakesPairsAndAHead) {
  ConfigBuilder builder;
  const RunConfig& config = builder.config();
  EXPECT_FALSE(config.data.sentence_pairs || config.model.sentence_order_head);
  builder.apply_text("[data]\npacking = doc\n[objective]\nsop-weight = 0.5\nsop-pairs = static\n",
                     "text");
  EXPECT_EQ(config.objective.sop_weight, 0.5);
  EXPECT_TRUE(config.data.sentence_pairs && config.model.sentence_order_head);
  EXPECT_EQ(config.data.pair_draw, PairDraw::kStatic);
  validate(builder);
  ConfigBuilder again;
  again.apply_text(builder.to_ini(true), "text");
  EXPECT_TRUE(again.config().data.sentence_pairs && again.config().model.sentence_order_head);
  builder.set("data.packing", "packed", "test");
  EXPECT_NE(message_of<std::invalid_argument>([&] { validate(builder); }).find("data.packing doc"),
            std::string::npos);
  builder.set("objective.sop-weight", "0", "test");
  EXPECT_FALSE(config.data.sentence_pairs || config.model.sentence_order_head);
  builder.set("objective.sop-pairs", "dynamic", "test");
  validate(builder);
}

TEST(Config, TheFlavourOfARunIsPrintedByItsName) {
  const auto printed = [](const std::string& text) {
    ConfigBuilder builder;
    builder.apply_text("[optim]\n" + text, "text");
    const std::string ini = builder.to_ini(false);
    const std::size_t begin = ini.find("flavour = ");
    return ini.substr(begin, ini.find('\n', begin) - begin);
  };
  EXPECT_EQ(printed(""), "flavour = torch");
  EXPECT_EQ(printed("flavour = torch\n"), "flavour = torch");
  EXPECT_EQ(printed("flavour = fairseq\n"), "flavour = fairseq");
  EXPECT_EQ(printed("optimizer = lamb\n"), "flavour = corrected");
  EXPECT_EQ(printed("flavour = default\noptimizer = lamb\n"), "flavour = corrected");
  EXPECT_EQ(printed("optimizer = lamb\nflavour = fairseq\n"), "flavour = fairseq");
}

TEST(Config, HelpNamesEveryEncoding) {
  const auto help = [](const std::string& name) {
    for (const ConfigEntry& entry : config_entries()) {
      if (entry.name == name) return entry.help;
    }
    return std::string();
  };
  ASSERT_FALSE(position_encoding_kinds().empty());
  for (const PositionEncodingKind& kind : position_encoding_kinds()) {
    EXPECT_NE(help("model.position").find(", " + kind.name), std::string::npos) << kind.name;
  }
  ASSERT_FALSE(input_encoding_kinds().empty());
  for (const InputEncodingKind& kind : input_encoding_kinds()) {
    EXPECT_NE(help("model.input-position").find(", " + kind.name), std::string::npos) << kind.name;
  }
}

TEST(Config, FrozenPositionsInStepsOrEpochsOrForever) {
  ConfigBuilder builder;
  builder.set("train.global-batch", "16", "test");
  const auto steps = [&](const std::string& frozen, std::uint64_t rows) {
    builder.set("optim.position-frozen-steps", frozen, "test");
    return frozen_position_steps(builder.config(), [&](std::int64_t taken) {
      return 16.0 * static_cast<double>(taken) / static_cast<double>(rows);
    });
  };
  EXPECT_EQ(steps("0", 100), 0);
  EXPECT_EQ(steps("70", 100), 70);
  EXPECT_EQ(steps("1 epoch", 160), 10);
  EXPECT_EQ(steps("0.5 epochs", 100), 4);  // 3.125 steps
  EXPECT_EQ(steps("2e", 100), 13);         // 12.5 steps
  EXPECT_EQ(steps("2e", 80000), 10000);    // whatever the length of the run
  builder.set("positions", "freeze", "test");
  EXPECT_EQ(steps("0", 100), INT64_MAX);
  EXPECT_EQ(message_of<std::invalid_argument>([&] { steps("soon", 1); }),
            "test: optim.position-frozen-steps: 'soon' is not a number of steps such as 2000, or "
            "of epochs such as 2e or 0.5 epochs");
}

TEST(Config, RampsAreReadAndWritten) {
  ConfigBuilder builder;
  const auto text = [&](const std::string& ramp) {
    builder.set("train.batch-ramp", ramp, "test");
    const std::string ini = builder.to_ini(false);
    const std::size_t at = ini.find("batch-ramp = ") + 13;
    return ini.substr(at, ini.find('\n', at) - at);
  };
  EXPECT_EQ(text("none"), "none");
  EXPECT_EQ(text("64:1k,128:3e3"), "64:1000,128:3000");
  EXPECT_EQ(builder.config().data.batch_ramp.size(), 2u);
  const auto error = [&](const std::string& ramp) {
    return message_of<std::invalid_argument>([&] { text(ramp); });
  };
  EXPECT_EQ(error("64"), "test: train.batch-ramp: '64' is not VALUE:STEP, as in 64:1000");
  EXPECT_EQ(error("64:9,128:9"),
            "test: train.batch-ramp: '128:9': step 9 does not come after step 9");
  EXPECT_NE(error("0:9").find("'0'"), std::string::npos);
  EXPECT_NE(error("64:x").find("'x'"), std::string::npos);
  EXPECT_NE(error(""), "");
  builder.set("data.length-ramp", "1024:5", "test");
  EXPECT_NE(message_of<std::invalid_argument>([&] { validate(builder); }).find("1024"),
            std::string::npos);
}

TEST(Config, ErrorsNameFileLineKeyAndWhatIsValid) {
  const auto error = [](const std::string& text) {
    return message_of<std::invalid_argument>([&] { ConfigBuilder().apply_text(text, "a.ini"); });
  };
  EXPECT_EQ(error("[train]\n\nstepz = 5\n"),
            "a.ini:3: unknown key 'train.stepz'; did you mean 'train.steps'?");
  EXPECT_EQ(error("[train]\nsteps = many\n"),
            "a.ini:2: train.steps: 'many' is not a whole number of at least 1");
  EXPECT_EQ(error("[data]\npacking = tight\n"),
            "a.ini:2: data.packing: unknown value 'tight'; valid: full, doc, packed");
  EXPECT_EQ(
      error("[data]\npacking = fill\n"),
      "a.ini:2: data.packing: unknown value 'fill'; did you mean 'full'? Valid: full, doc, packed");
  EXPECT_EQ(error("[train]\nsteps = 1\n\nsteps = 2\n"),
            "a.ini:4: train.steps is set twice, first in line 2");
  EXPECT_EQ(error("[train]\nno equals sign # here\n"),
            "a.ini:2: 'no equals sign' is neither [section] nor key = value");
  EXPECT_EQ(error("# c\n[train\nsteps = 1\n"), "a.ini:2: '[train' is no section; write [train]");
  EXPECT_NE(error("stops = 1\n").find("a.ini:1: unknown key 'stops'"), std::string::npos);
}

TEST(Config, FilesAreReadAsEditorsLeaveThem) {
  ConfigBuilder builder;
  builder.apply_text(
      "\xEF\xBB\xBF[train]  # first\r\nsteps = 7\r\n\r\n  [ model ]\nlayers=3 # three\n"
      "position = \"0:none,1-2:rope\"\n",
      "a.ini");
  EXPECT_EQ(builder.config().train.steps, 7);
  EXPECT_EQ(builder.config().model.layers, 3);
  EXPECT_EQ(builder.config().model.position, "0:none,1-2:rope");
  EXPECT_EQ(builder.origins().at("model.layers"), "a.ini:5");
}

// Settings that have no effect are refused with where they were set.
TEST(Config, NothingIsSetInVain) {
  const auto error = [](const std::string& text) {
    ConfigBuilder builder;
    builder.apply_text(text, "a.ini");
    return message_of<std::invalid_argument>([&] { validate(builder); });
  };
  const std::string fine = "(nothing was thrown)";
  EXPECT_EQ(error(""), fine);
  EXPECT_EQ(error("[data]\nspan-words = 5\n"),
            "a.ini:2: data.span-words is 5, which has no effect unless data.masking is span");
  EXPECT_EQ(error("[data]\nspan-words = 5\nmasking = span\n"), fine);
  EXPECT_EQ(error("[model]\nlogn-length = 128\n"),
            "a.ini:2: model.logn-length is 128, which has no effect unless model.logn is on");
  for (const char* text :
       {"[optim]\npower = 2\nschedule = constant\n", "[optim]\nend-learning-rate = 1e-5\n",
        "[optim]\nposition-lr-multiplier = 0.5\npositions = freeze\n",
        "[optim]\nposition-weight-decay = 0.5\npositions = freeze\n",
        "[data]\nngram-words = 3\nmasking = span\n", "[data]\nspan-probability = 0.3\n",
        "[data]\nlongest-word-tokens = 3\n", "[data]\nmask-unit = span\n",
        "[objective]\nsop-pairs = static\n"}) {
    EXPECT_NE(error(text).find("which has no effect unless"), std::string::npos) << text;
    EXPECT_EQ(error(text).find("a.ini:2: "), 0u) << text;
  }
}

TEST(Config, PlansAreCheckedWhereTheyWereSet) {
  const auto error = [](const std::string& name, const std::string& value) {
    ConfigBuilder builder;
    builder.set(name, value, "a.ini:4");
    return message_of<std::invalid_argument>([&] { validate(builder); });
  };
  EXPECT_EQ(
      error("model.position", "all:tupe")
          .find("a.ini:4: model.position: unknown position encoding 'tupe' (did you mean 'tupe-"),
      0u);
  EXPECT_NE(error("model.position", "all:learned").find("input-position learned"),
            std::string::npos);
  EXPECT_NE(error("model.position", "-1:rope").find("'-1' is no layer"), std::string::npos);
  EXPECT_NE(error("model.position", "all:ROPE").find("did you mean 'rope'"), std::string::npos);
  EXPECT_NE(error("model.input-position", "rope").find("position all:rope"), std::string::npos);
  EXPECT_EQ(error("model.input-position", "lerned").find("a.ini:4: model.input-position: "), 0u);
  EXPECT_EQ(error("model.mask-decoder", "edm").find("a.ini:4: model.mask-decoder: "), 0u);
  EXPECT_EQ(error("model.recompute", "12").find("a.ini:4: model.recompute: "), 0u);
}

TEST(CommandLine, SuggestsAndRefuses) {
  Verb verb;
  verb.name = "eat";
  verb.options = {{"fruit", VerbOption::Takes::kOneValue, "NAME", ""},
                  {"input", VerbOption::Takes::kManyValues, "PATH", ""},
                  {"raw", VerbOption::Takes::kNothing, "", ""}};
  const auto error = [&](const std::vector<std::string>& words) {
    return message_of<std::invalid_argument>([&] { CommandLine(verb, words); });
  };
  const CommandLine line(verb, {"--input", "a", "b", "--raw", "--fruit=fig", "--input", "c"});
  EXPECT_EQ(line.values("input"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(line.value("fruit"), "fig");
  EXPECT_TRUE(line.has("raw"));
  EXPECT_EQ(
      error({"--friut", "fig"}),
      "tupelo eat: unknown option '--friut'; did you mean '--fruit'? Valid: --fruit, --input, "
      "--raw");
  EXPECT_NE(error({"--fru", "fig"}).find("did you mean '--fruit'?"), std::string::npos);
  EXPECT_EQ(error({"--fruit", ""}), "tupelo eat: option '--fruit' has an empty value");
  EXPECT_EQ(error({"--input", "a", ""}), "tupelo eat: option '--input' has an empty value");
  EXPECT_NE(error({"fig"}).find("'fig' does not belong here"), std::string::npos);
  EXPECT_NE(error({"--fruit"}).find("--fruit"), std::string::npos);
  EXPECT_NE(error({"--fruit", "a", "--fruit", "b"}).find("given twice"), std::string::npos);
  verb.configurable = true;
  const CommandLine settings(verb, {"--train.steps", "7", "--position", "all:none"});
  ASSERT_EQ(settings.settings().size(), 2u);
  EXPECT_EQ(settings.settings()[1].first, "position");
  EXPECT_EQ(error({"--position", "all:none", "--model.position=all:rope"}),
            "tupelo eat: '--model.position' is given twice");
  verb.positional = "fruit";
  EXPECT_EQ(error({"fig", "plum"}), "tupelo eat: one NAME at a time, 'plum' is one too many");
}

class Folder : public ::testing::Test {
 protected:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tupelo-launcher-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() override { std::filesystem::remove_all(path_); }
  std::filesystem::path path_;
};

TEST_F(Folder, MetricsLogCutsBackToTheRestoredStep) {
  const auto file = path_ / "metrics.jsonl";
  {
    MetricsLog log(file, 0);
    for (int step = 1; step <= 3; ++step) {
      log.append("{\"step\":" + std::to_string(step) + ",\"loss\":0.1}");
    }
  }
  std::ofstream(file, std::ios::app) << "{\"step\":4,\"lo";  // torn by a kill
  { MetricsLog log(file, 2); }
  EXPECT_EQ(read_file(file), "{\"step\":1,\"loss\":0.1}\n{\"step\":2,\"loss\":0.1}\n");
}

TEST_F(Folder, RunLockHasOneHolder) {
  auto first = std::make_unique<RunLock>(path_ / "lock");
  const std::string error =
      message_of<std::invalid_argument>([&] { RunLock second(path_ / "lock"); });
  EXPECT_NE(error.find("in use"), std::string::npos);
  EXPECT_NE(error.find(std::to_string(getpid())), std::string::npos);
  first.reset();
  RunLock third(path_ / "lock");
}

TEST_F(Folder, AtomicWriteReplacesOrKeeps) {
  write_atomically(path_ / "file", "old");
  write_atomically(path_ / "file", "new");
  EXPECT_EQ(read_file(path_ / "file"), "new");
  EXPECT_THROW(write_atomically(path_ / "absent" / "file", "x"), std::system_error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path_), {}), 1);
  EXPECT_THROW(read_file(path_), std::system_error);
}

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

TEST(CurvePlot, DrawsEveryPointAndRefusesNothing) {
  const Curves curves = curves_from_metrics(
      "{\"step\":1,\"loss\":5.5}\n{\"step\":2,\"loss\":4.5}\nnot json\n"
      "{\"step\":2,\"event\":\"validation\",\"validation_loss\":4.75}\n");
  ASSERT_EQ(curves.curves.size(), 2u);
  EXPECT_EQ(curves.curves[0].points.size(), 2u);
  EXPECT_NE(to_svg(curves).find("<polyline"), std::string::npos);
  EXPECT_THROW(to_svg(Curves{}), std::invalid_argument);
}

}  // namespace
}  // namespace tupelo::config_test
