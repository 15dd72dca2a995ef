#include "optim/loss_scaler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace tupelo {
namespace {

LossScalerOptions small() { return {.initial = 16, .least = 2, .most = 64, .window = 3}; }

TEST(LossScaler, DoublesAfterAWindowOfFiniteSteps) {
  LossScaler scaler(small());
  scaler.finite();
  scaler.finite();
  EXPECT_EQ(scaler.scale(), 16);
  scaler.finite();
  EXPECT_EQ(scaler.scale(), 32);
  for (int i = 0; i < 30; ++i) scaler.finite();
  EXPECT_EQ(scaler.scale(), 64);  // the most
}

TEST(LossScaler, AnOverflowHalvesAndStartsTheWindowAnew) {
  LossScaler scaler(small());
  scaler.finite();
  scaler.finite();
  EXPECT_TRUE(scaler.overflowed());
  EXPECT_EQ(scaler.scale(), 8);
  scaler.finite();
  scaler.finite();
  EXPECT_EQ(scaler.scale(), 8);
  scaler.finite();
  EXPECT_EQ(scaler.scale(), 16);
}

TEST(LossScaler, NeverGoesBelowTheLeast) {
  LossScaler scaler(small());
  EXPECT_TRUE(scaler.overflowed());
  EXPECT_TRUE(scaler.overflowed());
  EXPECT_TRUE(scaler.overflowed());
  EXPECT_EQ(scaler.scale(), 2);
  for (int i = 0; i < 2000; ++i) EXPECT_FALSE(scaler.overflowed());
  EXPECT_EQ(scaler.scale(), 2);
}

TEST(LossScaler, GoesOnWhereItWas) {
  LossScaler scaler(small());
  scaler.restore(32, 2);
  EXPECT_EQ(scaler.scale(), 32);
  scaler.finite();
  EXPECT_EQ(scaler.scale(), 64);
  scaler.restore(0, 700);
  EXPECT_EQ(scaler.scale(), 2);
  EXPECT_EQ(scaler.finite_steps(), 2);
  scaler.restore(std::numeric_limits<double>::quiet_NaN(), -1);
  EXPECT_EQ(scaler.scale(), 16);
  EXPECT_EQ(scaler.finite_steps(), 0);
}

TEST(LossScaler, RefusesScalesThatCannotBe) {
  for (const LossScalerOptions& wrong :
       {LossScalerOptions{.initial = 1, .least = 0}, LossScalerOptions{.initial = 1, .least = 2},
        LossScalerOptions{.initial = 4, .least = 1, .most = 2}, LossScalerOptions{.window = 0}}) {
    EXPECT_THROW(LossScaler{wrong}, std::invalid_argument);
  }
}

}  // namespace
}  // namespace tupelo
