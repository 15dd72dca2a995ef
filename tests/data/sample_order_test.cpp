#include "data/sample_order.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>

#include "data/keyed_permutation.h"

namespace tupelo::sample_order_test {
namespace {

// `documents` documents of 10 tokens, each ceil(10 / (length - 2)) rows.
std::vector<std::uint64_t> offsets_of(std::uint64_t documents) {
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t i = 0; i <= documents; ++i) offsets.push_back(10 * i);
  return offsets;
}

const std::vector<std::uint64_t> kThirty = offsets_of(30), kFifty = offsets_of(50);

DataOptions options() {
  DataOptions options;
  options.packing = Packing::kDocument;
  options.sequence_length = 12;  // 30 rows
  options.global_batch = 8;
  return options;
}

TEST(SampleOrder, WithoutRampsStepsFollowEachOther) {
  const SampleOrder order({{&kThirty}}, options());
  EXPECT_EQ(order.step(0).first_sample, 0u);
  EXPECT_EQ(order.step(5).first_sample, 40u);
  EXPECT_EQ(order.step(std::int64_t{1} << 50).first_sample, std::uint64_t{8} << 50);
  EXPECT_EQ(order.step(5).global_batch, 8);
  EXPECT_EQ(order.plan(0, 0).rows(), 30u);
  EXPECT_EQ(order.epoch_after(0, 3), 0u);
  EXPECT_EQ(order.epoch_after(0, 4), 1u);
  EXPECT_DOUBLE_EQ(order.epochs_after(5), 40.0 / 30.0);
  EXPECT_EQ(order.epoch(0, 7).rows, 30u);
  EXPECT_EQ(order.epoch(0, 7).consumed, 30u);
}

TEST(SampleOrder, ABatchRampMovesNoSample) {
  DataOptions chosen = options();
  chosen.batch_ramp = {{2, 3}, {5, 4}};
  const SampleOrder order({{&kThirty}}, chosen);
  const std::vector<std::uint64_t> first = {0, 2, 4, 6, 11, 19, 27, 35};
  const std::vector<std::int64_t> batch = {2, 2, 2, 5, 8, 8, 8, 8};
  for (std::int64_t step = 0; step < 8; ++step) {
    EXPECT_EQ(order.step(step).first_sample, first[static_cast<std::size_t>(step)]);
    EXPECT_EQ(order.step(step).global_batch, batch[static_cast<std::size_t>(step)]);
    EXPECT_EQ(order.step(step).phase, 0u);
  }
  EXPECT_EQ(order.epoch_after(0, 6), 0u);
  EXPECT_EQ(order.epoch_after(0, 7), 1u);
  EXPECT_EQ(order.smallest_batch(), 2);
}

TEST(SampleOrder, PhasesHaveEpochsOfTheirOwn) {
  DataOptions chosen = options();
  chosen.length_ramp = {{7, 9}};  // 60 rows an epoch, 72 samples: one epoch and 12 rows of the next
  const SampleOrder order({{&kThirty}}, chosen);
  EXPECT_EQ(order.step(8).sequence_length, 7);
  EXPECT_EQ(order.plan(order.step(8).phase, 0).rows(), 60u);
  EXPECT_EQ(order.step(8).first_sample, 64u);
  EXPECT_EQ(order.step(9).sequence_length, 12);
  EXPECT_EQ(order.step(9).first_sample, 0u);
  EXPECT_EQ(SampleOrder::Reader(order).sample(order.step(9), 0).epoch, 2u);
  EXPECT_EQ(order.epoch_after(0, 7), 0u);
  EXPECT_EQ(order.epoch_after(0, 8), 1u);
  EXPECT_EQ(order.epoch_after(0, 9), 2u);  // the second epoch is cut
  EXPECT_EQ(order.epoch_after(0, 13), 3u);
  EXPECT_EQ(order.epoch(0, 0).consumed, 60u);
  EXPECT_EQ(order.epoch(0, 1).rows, 60u);
  EXPECT_EQ(order.epoch(0, 1).consumed, 12u);
  EXPECT_EQ(order.epoch(0, 2).rows, 30u);
  EXPECT_EQ(order.epoch(0, 9).consumed, 30u);
  EXPECT_DOUBLE_EQ(order.epochs_after(10), 72.0 / 60.0 + 8.0 / 30.0);
}

TEST(SampleOrder, APhaseThatEndsWithAnEpochCutsNone) {
  DataOptions chosen = options();
  chosen.global_batch = 10;
  chosen.length_ramp = {{7, 12}};  // 120 samples: two epochs
  const SampleOrder order({{&kThirty}}, chosen);
  EXPECT_EQ(SampleOrder::Reader(order).sample(order.step(12), 0).epoch, 2u);
  EXPECT_EQ(order.epoch(0, 1).consumed, 60u);
}

TEST(SampleOrder, EveryRowOnceInEveryWholeEpochOfEveryPhase) {
  DataOptions chosen = options();
  chosen.length_ramp = {{7, 10}, {9, 25}};
  chosen.batch_ramp = {{3, 5}, {7, 18}};
  const SampleOrder order({{&kThirty}}, chosen);
  SampleOrder::Reader reader(order);
  std::map<std::uint64_t, std::multiset<std::uint64_t>> used;
  for (std::int64_t number = 0; number < 60; ++number) {
    const SampleOrder::Step step = order.step(number);
    for (std::int64_t i = 0; i < step.global_batch; ++i) {
      const SampleOrder::Sample sample = reader.sample(step, static_cast<std::uint64_t>(i));
      used[sample.epoch].insert(sample.index);
    }
  }
  const std::uint64_t unfinished = order.epoch_after(0, 60);
  ASSERT_GT(unfinished, 5u);
  for (std::uint64_t epoch = 0; epoch < unfinished; ++epoch) {
    const std::multiset<std::uint64_t>& rows = used.at(epoch);
    EXPECT_EQ(rows.size(), order.epoch(0, epoch).consumed);
    EXPECT_EQ(std::set<std::uint64_t>(rows.begin(), rows.end()).size(), rows.size());
  }
}

TEST(SampleOrder, EveryRowOnceInEveryWholeEpochOfEveryCorpusOfAMixture) {
  DataOptions chosen = options();
  chosen.length_ramp = {{7, 600}};
  chosen.global_batch = 16;
  const SampleOrder order({{&kThirty, 3.0}, {&kFifty, 1.0}}, chosen);
  ASSERT_EQ(order.corpora(), 2u);
  SampleOrder::Reader reader(order);
  std::map<std::uint64_t, std::multiset<std::uint64_t>> used[2];
  std::uint64_t samples[2] = {0, 0};
  constexpr std::int64_t kSteps = 1300;
  for (std::int64_t number = 0; number < kSteps; ++number) {
    const SampleOrder::Step step = order.step(number);
    for (std::uint64_t i = 0; i < 16; ++i) {
      const SampleOrder::Sample sample = reader.sample(step, i);
      used[sample.corpus][sample.epoch].insert(sample.index);
      ++samples[sample.corpus];
    }
  }
  EXPECT_NEAR(static_cast<double>(samples[0]) / (16.0 * kSteps), 0.75, 0.01);
  for (std::size_t corpus = 0; corpus < 2; ++corpus) {
    const std::uint64_t unfinished = order.epoch_after(corpus, kSteps);
    ASSERT_GT(unfinished, 50u);
    for (std::uint64_t epoch = 0; epoch < unfinished; ++epoch) {
      const std::multiset<std::uint64_t>& rows = used[corpus].at(epoch);
      EXPECT_EQ(rows.size(), order.epoch(corpus, epoch).consumed);
      EXPECT_EQ(std::set<std::uint64_t>(rows.begin(), rows.end()).size(), rows.size());
    }
    EXPECT_EQ(used[corpus].rbegin()->first, unfinished);
  }
  EXPECT_DOUBLE_EQ(order.epochs_after(600), 9600.0 / 160.0);
}

TEST(SampleOrder, AnOrderThatTakesOverBeginsEpochsOfItsOwn) {
  const SampleOrder whole({{&kFifty}}, options());
  const OrderStart start = whole.start_after(9);  // 72 samples
  EXPECT_EQ(start.step, 9);
  EXPECT_EQ(start.epochs, std::vector<std::uint64_t>{2});
  EXPECT_DOUBLE_EQ(start.epochs_before, 72.0 / 50.0);
  EXPECT_EQ(whole.epoch_after_steps(0, 0, 9).consumed, 50u);
  EXPECT_EQ(whole.epoch_after_steps(0, 1, 9).consumed, 22u);
  EXPECT_EQ(whole.epoch_after_steps(0, 2, 9).consumed, 0u);

  const SampleOrder rest({{&kThirty}}, options(), nullptr, start);
  EXPECT_EQ(rest.step(9).first_sample, 0u);
  EXPECT_EQ(rest.step(12).first_sample, 24u);
  EXPECT_THROW(rest.step(8), std::out_of_range);
  EXPECT_THROW(rest.epoch(0, 1), std::out_of_range);
  SampleOrder::Reader reader(rest);
  EXPECT_EQ(reader.sample(rest.step(9), 0).epoch, 2u);
  EXPECT_EQ(reader.sample(rest.step(12), 5).epoch, 2u);
  EXPECT_EQ(reader.sample(rest.step(12), 6).epoch, 3u);
  EXPECT_EQ(rest.epoch_after(0, 9), 2u);
  EXPECT_EQ(rest.epoch_after(0, 13), 3u);
  EXPECT_DOUBLE_EQ(rest.epochs_after(9), 72.0 / 50.0);
  EXPECT_DOUBLE_EQ(rest.epochs_after(12), 72.0 / 50.0 + 24.0 / 30.0);
  EXPECT_DOUBLE_EQ(rest.epochs_after(3), 24.0 / 50.0);

  // One that takes over at once, before a row was used, begins the same epoch.
  EXPECT_EQ(rest.start_after(9).epochs, start.epochs);
  EXPECT_EQ(rest.start_after(9).epochs_before, start.epochs_before);
  EXPECT_EQ(whole.start_after(0).epochs, std::vector<std::uint64_t>{0});
}

TEST(SampleOrder, AnOrderThatTakesOverKeepsToTheRamps) {
  DataOptions chosen = options();
  chosen.length_ramp = {{7, 9}, {8, 20}};
  chosen.batch_ramp = {{2, 3}, {5, 12}};
  const SampleOrder whole({{&kFifty}}, chosen);
  for (const std::int64_t begin : {0, 2, 3, 9, 10, 15, 20, 30}) {
    const SampleOrder rest({{&kThirty}}, chosen, nullptr, whole.start_after(begin));
    SampleOrder::Reader reader(rest);
    std::map<std::uint64_t, std::multiset<std::uint64_t>> used;
    for (std::int64_t number = begin; number < 60; ++number) {
      const SampleOrder::Step step = rest.step(number), expected = whole.step(number);
      EXPECT_EQ(step.sequence_length, expected.sequence_length);
      EXPECT_EQ(step.global_batch, expected.global_batch);
      for (std::int64_t i = 0; i < step.global_batch; ++i) {
        const auto sample = reader.sample(step, static_cast<std::uint64_t>(i));
        EXPECT_GE(sample.epoch, whole.start_after(begin).epochs[0]);
        used[sample.epoch].insert(sample.index);
      }
    }
    for (const auto& [epoch, rows] : used) {
      EXPECT_EQ(rows.size(), rest.epoch_after_steps(0, epoch, 60).consumed);
      EXPECT_EQ(std::set<std::uint64_t>(rows.begin(), rows.end()).size(), rows.size());
    }
  }
}

TEST(SampleOrder, RefusesRampsThatGoBack) {
  const auto refused = [](const Ramp& lengths, const Ramp& batches) {
    DataOptions chosen = options();
    chosen.length_ramp = lengths;
    chosen.batch_ramp = batches;
    EXPECT_THROW(SampleOrder({{&kThirty}}, chosen), std::invalid_argument);
  };
  refused({{7, 5}, {8, 5}}, {});
  refused({{7, 0}}, {});
  refused({{3, 5}}, {});
  refused({}, {{4, 6}, {5, 2}});
  refused({}, {{0, 6}});
}

}  // namespace
}  // namespace tupelo::sample_order_test
