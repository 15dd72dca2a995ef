#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "launcher/command_line.h"
#include "launcher/run_config.h"
#include "launcher/value_text.h"
#include "model/position/input_encoding.h"
#include "model/position/position_encoding.h"
#include "tests/launcher/messages.h"

namespace tupelo::config_test {
namespace {

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
  EXPECT_EQ(error("[train]\ncuda-graphs = true\n[model]\nlayers = 2\nrecompute = 0\n"), fine);
  EXPECT_EQ(error("[model]\nlogn-length = 128\n"),
            "a.ini:2: model.logn-length is 128, which has no effect unless model.logn is on");
  for (const char* text :
       {"[optim]\npower = 2\nschedule = constant\n", "[optim]\nend-learning-rate = 1e-5\n",
        "[optim]\nposition-lr-multiplier = 0.5\npositions = freeze\n",
        "[optim]\nposition-weight-decay = 0.5\npositions = freeze\n",
        "[data]\nngram-words = 3\nmasking = span\n", "[data]\nspan-probability = 0.3\n",
        "[data]\nlongest-word-tokens = 3\n", "[data]\nmask-unit = span\n",
        "[objective]\nsop-pairs = static\n",
        "[train]\ncuda-graphs = true\n[data]\npacking = packed\n",
        "[train]\ncuda-graphs = true\n[model]\nrecompute = full\n",
        "[train]\ncuda-graphs = true\n[model]\nlayers = 2\nrecompute = 0\nmask-decoder = emd\n"}) {
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

}  // namespace
}  // namespace tupelo::config_test
