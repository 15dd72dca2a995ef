#include "model/allocation_meter.h"

#include <gtest/gtest.h>
#include <torch/types.h>

namespace tupelo::allocation_meter_test {
namespace {

TEST(AllocationMeter, CountsWhatLivesAndWhatWasMost) {
  const AllocationMeter meter;
  torch::Tensor kept = at::empty({100});
  EXPECT_EQ(meter.live_bytes(), 400);
  torch::Tensor gone = at::empty({1000}, at::kByte);
  gone.reset();
  EXPECT_EQ(meter.live_bytes(), 400);
  EXPECT_EQ(meter.peak_bytes(), 1400);
  kept.reset();
  EXPECT_EQ(meter.live_bytes(), 0);
}

TEST(AllocationMeter, MarksBeginThePeakAnew) {
  AllocationMeter meter;
  torch::Tensor gone = at::empty({1000}, at::kByte);
  gone.reset();
  meter.mark();
  EXPECT_EQ(meter.peak_bytes(), 0);
  const torch::Tensor kept = at::empty({10}, at::kByte);
  EXPECT_EQ(meter.peak_bytes(), 10);
}

TEST(AllocationMeter, SeesWhatAutogradKeepsAndBackwardNeeds) {
  const torch::Tensor weight = torch::ones({50}).requires_grad_();
  AllocationMeter meter;
  torch::Tensor result = (weight.exp() * 2).sum();
  EXPECT_EQ(meter.live_bytes(), 200 + 4);  // exp keeps its result
  result.backward();
  result.reset();
  EXPECT_EQ(meter.live_bytes(), 200);  // the gradient of the weight
  EXPECT_GE(meter.peak_bytes(), 2 * 200);
}

TEST(AllocationMeter, ReleasesOfOlderBlocksAreNotItsBusiness) {
  torch::Tensor older = at::empty({8}, at::kByte);
  const AllocationMeter meter;
  older.reset();
  EXPECT_EQ(meter.live_bytes(), 0);
}

TEST(AllocationMeter, NestAndEnd) {
  const AllocationMeter outer;
  {
    const AllocationMeter inner;
    const torch::Tensor seen = at::empty({8}, at::kByte);
    EXPECT_EQ(inner.live_bytes(), 8);
  }
  EXPECT_EQ(outer.live_bytes(), 0);
  const torch::Tensor seen = at::empty({4}, at::kByte);
  EXPECT_EQ(outer.live_bytes(), 4);
}

}  // namespace
}  // namespace tupelo::allocation_meter_test
