#include "launcher/update_settings.h"

#include <gtest/gtest.h>

#include <cmath>

#include "launcher/run_config.h"

namespace tupelo::update_settings_test {
namespace {

RunConfig config_with(const std::string& optim, std::int64_t steps = 1000) {
  ConfigBuilder builder;
  builder.apply_text("[optim]\nwarmup = 0\nlearning-rate = 0.5\nschedule = constant\n" + optim,
                     "text");
  builder.config().train.steps = steps;
  return builder.config();
}

TEST(Cooldowns, AreTheEndOfTheRun) {
  EXPECT_EQ(cooldown_span(config_with("")).steps, 0);
  EXPECT_EQ(cooldown_span(config_with("cooldown = 200\n")), (CooldownSpan{800, 200}));
  EXPECT_EQ(cooldown_span(config_with("cooldown = 10%\n")), (CooldownSpan{900, 100}));
}

TEST(Cooldowns, ThatBeginEarlierTakeTheirShareOfWhatThereIsThen) {
  EXPECT_EQ(cooldown_span_from(config_with("cooldown = 200\n"), 300), (CooldownSpan{300, 200}));
  EXPECT_EQ(cooldown_span_from(config_with("cooldown = 10%\n"), 900), (CooldownSpan{900, 100}));
  EXPECT_EQ(cooldown_span_from(config_with("cooldown = 20%\n"), 80), (CooldownSpan{80, 20}));
  EXPECT_EQ(cooldown_span_from(config_with("cooldown = 20%\n"), 1), (CooldownSpan{1, 1}));
  EXPECT_EQ(cooldown_span_from(config_with("cooldown = 0\n"), 80).steps, 0);
  EXPECT_EQ(cooldown_span_from(config_with("cooldown = 0%\n"), 80).steps, 0);
}

TEST(Cooldowns, FallToTheEndRate) {
  const RunConfig config =
      config_with("cooldown = 200\nend-learning-rate = 0.1\ndecay-shape = linear\n");
  const LearningRateSchedule planned = learning_rate_schedule(config);
  EXPECT_EQ(planned(799), 0.5);
  EXPECT_DOUBLE_EQ(planned(900), 0.3);
  EXPECT_EQ(planned(1000), 0.1);
  const LearningRateSchedule early = learning_rate_schedule(config, {300, 200});
  EXPECT_EQ(early(299), 0.5);
  EXPECT_DOUBLE_EQ(early(400), 0.3);
  EXPECT_EQ(early(500), 0.1);
}

TEST(Scaling, MultipliesEveryRate) {
  RunConfig config = config_with("end-learning-rate = 0.1\ndecay-steps = 100\n");
  config.optim.schedule.name = "wsd";
  const LearningRateSchedule plain = learning_rate_schedule(config);
  EXPECT_DOUBLE_EQ(plain(925), 0.3);
  config.optim.lr_reference_batch = 8;
  config.data.global_batch = 128;
  for (const auto& [scaling, factor] : {std::pair{"linear", 16.0}, {"sqrt", 4.0}}) {
    config.optim.lr_scaling = scaling;
    const LearningRateSchedule scaled = learning_rate_schedule(config);
    for (const std::int64_t s : {0, 500, 925, 1000}) {
      EXPECT_DOUBLE_EQ(scaled(s), factor * plain(s)) << scaling << " " << s;
    }
  }
  config.optim.lr_scaling = "linear";
  config.optim.lr_reference_batch = 128;
  EXPECT_EQ(learning_rate_schedule(config)(925), plain(925));
}

}  // namespace
}  // namespace tupelo::update_settings_test
