#include "data/sample_order.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>

#include "data/keyed_permutation.h"

namespace tupelo {
namespace {

// 30 documents of 10 tokens: 30 * ceil(10 / (length - 2)) rows.
std::vector<std::uint64_t> offsets() {
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t i = 0; i <= 30; ++i) offsets.push_back(10 * i);
  return offsets;
}

DataOptions options() {
  DataOptions options;
  options.packing = Packing::kDocument;
  options.sequence_length = 12;  // 30 rows
  options.global_batch = 8;
  return options;
}

TEST(SampleOrder, WithoutRampsStepsFollowEachOther) {
  const SampleOrder order(offsets(), options());
  EXPECT_EQ(order.step(0).first_sample, 0u);
  EXPECT_EQ(order.step(5).first_sample, 40u);
  EXPECT_EQ(order.step(std::int64_t{1} << 50).first_sample, std::uint64_t{8} << 50);
  EXPECT_EQ(order.step(5).global_batch, 8);
  EXPECT_EQ(order.step(5).plan->rows(), 30u);
  EXPECT_EQ(order.epoch_after(3), 0u);
  EXPECT_EQ(order.epoch_after(4), 1u);
  EXPECT_DOUBLE_EQ(order.epochs_after(5), 40.0 / 30.0);
  EXPECT_EQ(order.epoch(7).rows, 30u);
  EXPECT_EQ(order.epoch(7).consumed, 30u);
}

TEST(SampleOrder, ABatchRampMovesNoSample) {
  DataOptions chosen = options();
  chosen.batch_ramp = {{2, 3}, {5, 4}};
  const SampleOrder order(offsets(), chosen);
  const std::vector<std::uint64_t> first = {0, 2, 4, 6, 11, 19, 27, 35};
  const std::vector<std::int64_t> batch = {2, 2, 2, 5, 8, 8, 8, 8};
  for (std::int64_t step = 0; step < 8; ++step) {
    EXPECT_EQ(order.step(step).first_sample, first[static_cast<std::size_t>(step)]);
    EXPECT_EQ(order.step(step).global_batch, batch[static_cast<std::size_t>(step)]);
    EXPECT_EQ(order.step(step).first_epoch, 0u);
  }
  EXPECT_EQ(order.epoch_after(6), 0u);
  EXPECT_EQ(order.epoch_after(7), 1u);
  EXPECT_EQ(order.smallest_batch(), 2);
}

TEST(SampleOrder, PhasesHaveEpochsOfTheirOwn) {
  DataOptions chosen = options();
  chosen.length_ramp = {{7, 9}};  // 60 rows an epoch, 72 samples: one epoch and 12 rows of the next
  const SampleOrder order(offsets(), chosen);
  EXPECT_EQ(order.step(8).sequence_length, 7);
  EXPECT_EQ(order.step(8).plan->rows(), 60u);
  EXPECT_EQ(order.step(8).first_sample, 64u);
  EXPECT_EQ(order.step(9).sequence_length, 12);
  EXPECT_EQ(order.step(9).first_sample, 0u);
  EXPECT_EQ(order.step(9).first_epoch, 2u);
  EXPECT_EQ(order.epoch_after(7), 0u);
  EXPECT_EQ(order.epoch_after(8), 1u);
  EXPECT_EQ(order.epoch_after(9), 2u);  // the second epoch is cut
  EXPECT_EQ(order.epoch_after(13), 3u);
  EXPECT_EQ(order.epoch(0).consumed, 60u);
  EXPECT_EQ(order.epoch(1).rows, 60u);
  EXPECT_EQ(order.epoch(1).consumed, 12u);
  EXPECT_EQ(order.epoch(2).rows, 30u);
  EXPECT_EQ(order.epoch(9).consumed, 30u);
  EXPECT_DOUBLE_EQ(order.epochs_after(10), 2.0 + 8.0 / 30.0);
}

TEST(SampleOrder, APhaseThatEndsWithAnEpochCutsNone) {
  DataOptions chosen = options();
  chosen.global_batch = 10;
  chosen.length_ramp = {{7, 12}};  // 120 samples: two epochs
  const SampleOrder order(offsets(), chosen);
  EXPECT_EQ(order.step(12).first_epoch, 2u);
  EXPECT_EQ(order.epoch(1).consumed, 60u);
}

TEST(SampleOrder, EveryRowOnceInEveryWholeEpochOfEveryPhase) {
  DataOptions chosen = options();
  chosen.length_ramp = {{7, 10}, {9, 25}};
  chosen.batch_ramp = {{3, 5}, {7, 18}};
  const SampleOrder order(offsets(), chosen);
  std::map<std::uint64_t, std::multiset<std::uint64_t>> used;
  for (std::int64_t number = 0; number < 60; ++number) {
    const SampleOrder::Step step = order.step(number);
    for (std::int64_t i = 0; i < step.global_batch; ++i) {
      const std::uint64_t sample = step.first_sample + static_cast<std::uint64_t>(i);
      used[step.first_epoch + sample / step.plan->rows()].insert(sample % step.plan->rows());
    }
  }
  const std::uint64_t unfinished = order.epoch_after(60);
  ASSERT_GT(unfinished, 5u);
  for (std::uint64_t epoch = 0; epoch < unfinished; ++epoch) {
    const std::multiset<std::uint64_t>& rows = used.at(epoch);
    EXPECT_EQ(rows.size(), order.epoch(epoch).consumed);
    EXPECT_EQ(std::set<std::uint64_t>(rows.begin(), rows.end()).size(), rows.size());
  }
}

TEST(SampleOrder, RefusesRampsThatGoBack) {
  const auto refused = [](const Ramp& lengths, const Ramp& batches) {
    DataOptions chosen = options();
    chosen.length_ramp = lengths;
    chosen.batch_ramp = batches;
    EXPECT_THROW(SampleOrder(offsets(), chosen), std::invalid_argument);
  };
  refused({{7, 5}, {8, 5}}, {});
  refused({{7, 0}}, {});
  refused({{3, 5}}, {});
  refused({}, {{4, 6}, {5, 2}});
  refused({}, {{0, 6}});
}

}  // namespace
}  // namespace tupelo
