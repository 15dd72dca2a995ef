// Values as people write them.
#include "launcher/value_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "launcher/nearest_name.h"
#include "tests/launcher/messages.h"

namespace tupelo::value_text_test {
namespace {

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

}  // namespace
}  // namespace tupelo::value_text_test
