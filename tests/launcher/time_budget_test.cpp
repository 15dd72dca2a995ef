#include "launcher/time_budget.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "launcher/value_text.h"

namespace tupelo {
namespace {

TEST(TimeBudget, WithoutLimitIsNeverOver) {
  TimeBudget budget(0);
  budget.start(10);
  budget.step_ended(1e9);
  EXPECT_FALSE(budget.is_limited());
  EXPECT_FALSE(budget.is_over(1e12));
  EXPECT_FALSE(budget.is_time_for(5, 1e12));
}

TEST(TimeBudget, EndsBeforeTheStepThatWouldEndTooLate) {
  TimeBudget budget(100);
  EXPECT_EQ(budget.used(1000), 0);
  budget.start(1000);
  EXPECT_FALSE(budget.is_over(1099));  // no step is timed yet
  EXPECT_TRUE(budget.is_over(1101));
  for (int step = 1; step <= 9; ++step) {
    EXPECT_FALSE(budget.is_over(1000 + 10 * (step - 1))) << step;
    budget.step_ended(1000 + 10 * step);
  }
  EXPECT_EQ(budget.step_seconds(), 10);
  EXPECT_EQ(budget.used(1090), 90);
  EXPECT_FALSE(budget.is_over(1090));
  EXPECT_TRUE(budget.is_over(1091));
}

TEST(TimeBudget, CoolsDownAtTheLastStepThatLeavesTimeForIt) {
  TimeBudget budget(100);
  budget.start(0);
  EXPECT_FALSE(budget.is_time_for(3, 0));
  int step = 0;
  do {
    ++step;
    budget.step_ended(10 * step);
  } while (!budget.is_time_for(3, 10 * step));
  EXPECT_EQ(step, 7);
}

TEST(TimeBudget, CountsWhatEarlierStartsUsed) {
  TimeBudget budget(100);
  budget.take_up(95, 10);
  EXPECT_EQ(budget.used(7), 95);
  budget.start(7);
  EXPECT_EQ(budget.step_seconds(), 10);
  EXPECT_TRUE(budget.is_over(7));
  EXPECT_TRUE(budget.is_time_for(3, 7));
  budget.step_ended(8);
  EXPECT_EQ(budget.step_seconds(), 1);
  EXPECT_EQ(budget.used(8), 96);
  EXPECT_FALSE(budget.is_over(8));
}

TEST(TimeBudget, ForgetsOldSteps) {
  TimeBudget budget(1e9);
  budget.start(0);
  double now = 0;
  for (int step = 0; step < 500; ++step) budget.step_ended(now += 1);
  for (std::size_t step = 0; step < TimeBudget::kWindow; ++step) budget.step_ended(now += 3);
  EXPECT_EQ(budget.step_seconds(), 3);
}

TEST(TimeSpan, AddsItsParts) {
  EXPECT_EQ(parse_time_span("0"), 0);
  EXPECT_EQ(parse_time_span("6h30m"), 23400);
  EXPECT_EQ(parse_time_span("1d12h"), 129600);
  EXPECT_EQ(parse_time_span("90m"), 5400);
  EXPECT_EQ(parse_time_span("45s"), 45);
  EXPECT_EQ(parse_time_span("1d2h3m4s"), 93784);
}

TEST(TimeSpan, RefusesAnythingElse) {
  for (const char* text : {"", "6", "6h30", "30m6h", "6 h", "h", "6.5h", "-1h", "6hh", "0h", "6h6h",
                           "9999999999s", "6h\n", "+6h"}) {
    EXPECT_THROW(parse_time_span(text), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace tupelo
