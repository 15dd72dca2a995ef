#include "optim/cooldown.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "optim/schedule.h"

namespace tupelo {
namespace {

using nlohmann::json;

// The warm-up, stable, decay schedules of transformers: reference/make_schedules.py.
TEST(PublishedDecays, EveryRateMatches) {
  std::ifstream file(TUPELO_SCHEDULES_JSON);
  const json content = json::parse(file);
  ASSERT_EQ(content.at("rates").size(), decay_shapes().size());
  for (const auto& [shape, rates] : content.at("rates").items()) {
    ScheduleOptions options;
    options.name = "wsd";
    options.decay_shape = shape;
    options.peak = content.at("peak").get<double>();
    options.end = content.at("end").get<double>();
    options.warmup_steps = content.at("warmup").get<std::int64_t>();
    options.decay_steps = content.at("decay").get<std::int64_t>();
    options.total_steps = content.at("total").get<std::int64_t>();
    const LearningRateSchedule schedule = make_schedule(options);
    ASSERT_GT(static_cast<std::int64_t>(rates.size()), options.total_steps);
    // Before that it warms up from `end`, and our schedules from 0.
    for (auto s = static_cast<std::size_t>(options.warmup_steps); s < rates.size(); ++s) {
      EXPECT_NEAR(schedule(static_cast<std::int64_t>(s)), rates[s].get<double>(),
                  1e-14 * options.peak)
          << shape << " after " << s;
    }
  }
}

double constant(std::int64_t) { return 0.5; }

class EveryShape : public testing::TestWithParam<std::string> {};

TEST_P(EveryShape, FallsFromTheRateThereToTheEnd) {
  const LearningRateSchedule schedule = with_cooldown(constant, {100, 20, GetParam(), 0.125});
  EXPECT_EQ(schedule(0), 0.5);
  EXPECT_EQ(schedule(99), 0.5);
  EXPECT_DOUBLE_EQ(schedule(100), 0.5);
  for (std::int64_t s = 100; s < 120; ++s) EXPECT_GT(schedule(s), schedule(s + 1)) << s;
  EXPECT_EQ(schedule(120), 0.125);
  EXPECT_EQ(schedule(5000), 0.125);
}

TEST_P(EveryShape, IsThatOfWsd) {
  ScheduleOptions options;
  options.name = "wsd";
  options.peak = 0.5;
  options.decay_shape = GetParam();
  options.warmup_steps = 10;
  options.decay_steps = 20;
  options.total_steps = 120;
  const LearningRateSchedule whole = make_schedule(options);
  options.name = "constant";
  const LearningRateSchedule cooled =
      with_cooldown(make_schedule(options), {100, 20, GetParam(), 0.0});
  for (std::int64_t s = 0; s < 130; ++s) EXPECT_DOUBLE_EQ(whole(s), cooled(s)) << s;
}

INSTANTIATE_TEST_SUITE_P(Names, EveryShape, testing::ValuesIn(decay_shapes()),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return "of_" + name;
                         });

TEST(Cooldown, BeginsAtTheRateOfAnySchedule) {
  ScheduleOptions options;
  options.name = "inverse-sqrt";
  options.peak = 1.0;
  options.warmup_steps = 100;
  const LearningRateSchedule plain = make_schedule(options);
  const LearningRateSchedule cooled = with_cooldown(plain, {400, 100, "1-sqrt", 0.0});
  EXPECT_EQ(cooled(399), plain(399));
  EXPECT_DOUBLE_EQ(cooled(400), 0.5);
  EXPECT_DOUBLE_EQ(cooled(425), 0.25);  // half is gone after a quarter
}

TEST(Cooldown, HalvesOfShapes) {
  EXPECT_EQ(decay_factor("1-sqrt", 0.25), 0.5);
  EXPECT_EQ(decay_factor("linear", 0.25), 0.75);
  EXPECT_DOUBLE_EQ(decay_factor("cosine", 0.5), 0.5);
}

std::string refusal(const Cooldown& cooldown) {
  try {
    with_cooldown(constant, cooldown);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Cooldown, NamesWhatIsWrong) {
  EXPECT_EQ(refusal({10, 5, "sqrt", 0.0}),
            "unknown decay shape 'sqrt', did you mean '1-sqrt'? Valid: 1-sqrt, linear, cosine");
  EXPECT_NE(refusal({10, 0, "linear", 0.0}).find("at least 1 step"), std::string::npos);
  EXPECT_NE(refusal({-1, 5, "linear", 0.0}).find("from step -1"), std::string::npos);
  EXPECT_NE(refusal({1, 5, "linear", std::nan("")}).find("nan"), std::string::npos);
  EXPECT_EQ(refusal({0, 1, "linear", 0.0}), "accepted");
}

TEST(Wsd, NeedsRoomForWarmupAndDecay) {
  ScheduleOptions options;
  options.name = "wsd";
  options.warmup_steps = 6;
  options.decay_steps = 5;
  options.total_steps = 10;
  try {
    make_schedule(options);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "learning-rate schedule: warm-up of 6 steps and decay of 5 exceed the 10 steps in "
                 "total");
  }
  options.total_steps = 11;
  EXPECT_EQ(make_schedule(options)(6), options.peak);
}

}  // namespace
}  // namespace tupelo
