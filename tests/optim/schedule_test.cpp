#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/refvec.h"

namespace tupelo::schedule_test {
namespace {

class ScheduleVectors : public testing::TestWithParam<torch::ScalarType> {};

TEST_P(ScheduleVectors, EveryScheduleMatches) {
  const Refvec vectors = Refvec::load("lr_schedules", GetParam());
  const torch::Tensor steps = vectors.tensor("in.step");
  for (const std::string& name : schedule_names()) {
    if (name == "wsd") continue;  // PublishedDecays
    ScheduleOptions options;
    options.name = name;
    options.peak = vectors.number("peak");
    options.end = vectors.number("end");
    options.power = vectors.number("power");
    options.warmup_steps = vectors.integer("warmup");
    options.total_steps = vectors.integer("total");
    const LearningRateSchedule schedule = make_schedule(options);
    torch::Tensor rates = torch::empty(steps.sizes(), torch::kFloat64);
    for (std::int64_t i = 0; i < steps.numel(); ++i) {
      rates[i] = schedule(steps[i].item<std::int64_t>());
    }
    std::string key = "out." + name;
    std::replace(key.begin(), key.end(), '-', '_');
    EXPECT_TRUE(vectors.compare_each(key, rates, 1e-15));
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, ScheduleVectors,
                         testing::Values(torch::kFloat64, torch::kFloat32),
                         [](const auto& param) { return std::string(toString(param.param)); });

ScheduleOptions options_of(const std::string& name) {
  ScheduleOptions options;
  options.name = name;
  options.peak = 0.5;
  options.warmup_steps = 10;
  options.total_steps = 50;
  return options;
}

class EverySchedule : public testing::TestWithParam<std::string> {};

TEST_P(EverySchedule, RisesToThePeakAndDoesNotRiseAgainBeforeTheEnd) {
  const ScheduleOptions options = options_of(GetParam());
  const LearningRateSchedule schedule = make_schedule(options);
  EXPECT_DOUBLE_EQ(schedule(10), 0.5);
  EXPECT_DOUBLE_EQ(schedule(5), 0.25);
  for (std::int64_t s = 1; s < 10; ++s) EXPECT_LT(schedule(s), schedule(s + 1)) << s;
  for (std::int64_t s = 10; s < 50; ++s) EXPECT_GE(schedule(s), schedule(s + 1)) << s;
}

TEST_P(EverySchedule, StartsAtThePeakWithoutWarmup) {
  ScheduleOptions options = options_of(GetParam());
  options.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(make_schedule(options)(0), 0.5);
}

TEST_P(EverySchedule, MayWarmUpUntilTheEnd) {
  ScheduleOptions options = options_of(GetParam());
  options.warmup_steps = options.total_steps;
  const LearningRateSchedule schedule = make_schedule(options);
  EXPECT_DOUBLE_EQ(schedule(49), 0.5 * 49 / 50);
  EXPECT_TRUE(std::isfinite(schedule(50)));
  EXPECT_TRUE(std::isfinite(schedule(51)));
}

TEST_P(EverySchedule, IsPureAndOutlivesItsOptions) {
  LearningRateSchedule schedule;
  {
    const ScheduleOptions options = options_of(GetParam());
    schedule = make_schedule(options);
  }
  const double late = schedule(40);
  schedule(3);
  EXPECT_EQ(schedule(40), late);
}

INSTANTIATE_TEST_SUITE_P(Names, EverySchedule, testing::ValuesIn(schedule_names()),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Schedule, DecaysEndWhereTheyShouldAndStayThere) {
  for (const char* name : {"polynomial", "fairseq-polynomial"}) {
    ScheduleOptions options = options_of(name);
    options.end = 0.125;
    const LearningRateSchedule schedule = make_schedule(options);
    EXPECT_DOUBLE_EQ(schedule(30), 0.125 + (0.5 - 0.125) / 2) << name;
    EXPECT_EQ(schedule(50), 0.125) << name;
    EXPECT_EQ(schedule(5000), 0.125) << name;
  }
  EXPECT_EQ(make_schedule(options_of("linear"))(50), 0.0);
  EXPECT_EQ(make_schedule(options_of("linear"))(5000), 0.0);
  EXPECT_NEAR(make_schedule(options_of("cosine"))(50), 0.0, 1e-17);
  EXPECT_EQ(make_schedule(options_of("constant"))(5000), 0.5);
}

TEST(Schedule, InverseSqrtHalvesAtFourTimesTheWarmup) {
  EXPECT_DOUBLE_EQ(make_schedule(options_of("inverse-sqrt"))(40), 0.25);
  ScheduleOptions options = options_of("inverse-sqrt");
  options.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(make_schedule(options)(30000), 0.25);
}

TEST(Schedule, FairseqBeginsAboveZero) {
  EXPECT_EQ(make_schedule(options_of("linear"))(0), 0.0);
  const LearningRateSchedule schedule = make_schedule(options_of("fairseq-polynomial"));
  EXPECT_DOUBLE_EQ(schedule(0), 0.05);
  EXPECT_DOUBLE_EQ(schedule(1), 0.05);
  EXPECT_DOUBLE_EQ(schedule(2), 0.1);
}

std::string refusal(const ScheduleOptions& options) {
  try {
    make_schedule(options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Schedule, NamesWhatIsWrong) {
  EXPECT_EQ(
      refusal(options_of("linaer")),
      "unknown schedule 'linaer', did you mean 'linear'? Valid: constant, linear, polynomial, "
      "cosine, inverse-sqrt, fairseq-polynomial, wsd");
  EXPECT_EQ(refusal(options_of("steps")),
            "unknown schedule 'steps'. Valid: constant, linear, polynomial, cosine, inverse-sqrt, "
            "fairseq-polynomial, wsd");
  ScheduleOptions options = options_of("linear");
  options.total_steps = 0;
  EXPECT_EQ(refusal(options),
            "learning-rate schedule: 'linear' needs at least 1 step in total, got 0");
  options.total_steps = 9;
  EXPECT_EQ(refusal(options),
            "learning-rate schedule: warm-up of 10 steps exceeds the 9 steps in total");
  options = options_of("linear");
  options.warmup_steps = -1;
  EXPECT_NE(refusal(options).find("-1"), std::string::npos);
  options = options_of("linear");
  options.peak = std::nan("");
  EXPECT_NE(refusal(options).find("peak"), std::string::npos);
  options = options_of("polynomial");
  options.power = 0;
  EXPECT_NE(refusal(options).find("power"), std::string::npos);
  options.power = 1;
  options.end = -1;
  EXPECT_NE(refusal(options).find("end"), std::string::npos);
}

TEST(Schedule, ThoseWithoutAnEndNeedNoTotal) {
  for (const char* name : {"constant", "inverse-sqrt"}) {
    ScheduleOptions options = options_of(name);
    options.total_steps = 0;
    EXPECT_DOUBLE_EQ(make_schedule(options)(10), 0.5) << name;
  }
}

TEST(Warmup, ReadsStepsAndPercentages) {
  EXPECT_EQ(parse_steps("2000", 10), 2000);
  EXPECT_EQ(parse_steps("0", 10), 0);
  EXPECT_EQ(parse_steps("6%", 125000), 7500);
  EXPECT_EQ(parse_steps("0%", 125000), 0);
  EXPECT_EQ(parse_steps("100%", 125000), 125000);
  EXPECT_EQ(parse_steps("2.5%", 1000), 25);
  for (std::int64_t percent = 0; percent <= 100; ++percent) {
    EXPECT_EQ(parse_steps(std::to_string(percent) + "%", 100), percent);
  }
}

TEST(Warmup, RefusesAnythingElse) {
  for (const char* text : {"", "%", "x", "-1", "-1%", "101%", "6 %", " 6", "6.5", "6%%", "1e3",
                           "nan%", "inf%", "+5", "99999999999999999999"}) {
    EXPECT_THROW(parse_steps(text, 1000), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace tupelo::schedule_test
