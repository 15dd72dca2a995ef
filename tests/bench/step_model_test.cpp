#include "bench/step_model.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <vector>

#include "bench/encoder_work.h"

namespace tupelo::bench {
namespace {

// Two ranks on a host: a sum of B bytes takes 2 hops and B / speed, half of it scattered or
// gathered.
Fabric pair_of_ranks(double hop_seconds, double bytes_per_second) {
  Fabric fabric;
  fabric.ranks_per_host = 2;
  fabric.inside.ring_hop_seconds = hop_seconds;
  fabric.inside.tree_hop_seconds = hop_seconds;
  fabric.inside.bytes_per_second = bytes_per_second;
  return fabric;
}

// Forward 1 s and 2 s, so backward reaches the second layer's gradient at 4 s, the first's at 6 s.
std::vector<Layer> two_layers() { return {{{{1, {100}}}}, {{{2, {200}}}}}; }

StepSettings two_ranks() {
  StepSettings settings;
  settings.ranks = 2;
  settings.bucket_bytes = 800;  // a layer in each
  settings.agreements = 0;
  return settings;
}

TEST(StepModel, OneRankOnlyComputes) {
  StepSettings settings;
  settings.micro_batches = 3;
  settings.update_seconds = 0.5;
  for (const Shard shard : {Shard::kNone, Shard::kNode, Shard::kWorld}) {
    settings.shard = shard;
    const StepTime time = predict_step(two_layers(), pair_of_ranks(1, 1), settings);
    EXPECT_DOUBLE_EQ(time.compute_seconds, 3 * 9);
    EXPECT_EQ(time.exposed_seconds(), 0);
    EXPECT_EQ(time.communication_seconds, 0);
    EXPECT_DOUBLE_EQ(time.seconds(), 27.5);
  }
}

TEST(StepModel, BucketsAreFilledFromTheLastTensor) {
  const std::vector<Layer> layers = {{{{0, {50}}, {1, {10, 20}}}}, {{{2, {30, 40}}}}};
  const std::vector<Bucket> buckets = buckets_of(layers, /*backward_factor=*/2, 4 * 90);
  // 40 and 30 and 20 fit; 10 no longer does, and takes 50 along.
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].elements, 90);
  EXPECT_EQ(buckets[0].ready_seconds, 6);
  EXPECT_EQ(buckets[0].first_layer, 0u);
  EXPECT_EQ(buckets[1].elements, 60);
  EXPECT_EQ(buckets[1].ready_seconds, 6);
  EXPECT_EQ(buckets[1].first_layer, 0u);
}

TEST(StepModel, ATensorLargerThanABucketHasOneOfItsOwn) {
  const std::vector<Bucket> buckets = buckets_of({{{{1, {5, 1000, 6}}}}}, 2, 4 * 20);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].elements, 6);
  EXPECT_EQ(buckets[1].elements, 1000);
  EXPECT_EQ(buckets[2].elements, 5);
}

TEST(StepModel, AQueueDoesOneThingAfterTheOther) {
  // The second waits for the first, the third is not ready when the second has ended.
  EXPECT_EQ(queue_ends({1, 2, 10, 10}, {4, 3, 1, 2}), (std::vector<double>{5, 8, 11, 13}));
}

TEST(StepModel, SumsOverlapWithBackwardButForTheLast) {
  // Buckets of 800 and 400 bytes, 2 s and 1 s: sent at 4 s and 6 s.
  const StepTime time = predict_step(two_layers(), pair_of_ranks(0, 400), two_ranks());
  EXPECT_EQ(time.buckets, 2u);
  EXPECT_DOUBLE_EQ(time.exposed_reduce_seconds, 1);
  EXPECT_DOUBLE_EQ(time.communication_seconds, 3);
  EXPECT_DOUBLE_EQ(time.seconds(), 10);
}

TEST(StepModel, ASumWaitsForTheOneBeforeIt) {
  // 4 s and 2 s: the first ends at 8 s, 2 s after backward, the second at 10 s.
  EXPECT_DOUBLE_EQ(
      predict_step(two_layers(), pair_of_ranks(0, 200), two_ranks()).exposed_reduce_seconds, 4);
}

TEST(StepModel, WithoutOverlapAllIsExposed) {
  StepSettings settings = two_ranks();
  settings.overlap = false;
  const StepTime time = predict_step(two_layers(), pair_of_ranks(0, 400), settings);
  EXPECT_DOUBLE_EQ(time.exposed_reduce_seconds, 3);
  EXPECT_DOUBLE_EQ(time.exposed_reduce_seconds, time.communication_seconds);
}

TEST(StepModel, SumsHideWhereBackwardGoesOnLongEnough) {
  // An operation without parameters before the first layer's takes 10 s of backward.
  std::vector<Layer> layers = two_layers();
  layers.front().operations.insert(layers.front().operations.begin(), {5, {}});
  const StepTime time = predict_step(layers, pair_of_ranks(0, 400), two_ranks());
  EXPECT_EQ(time.exposed_reduce_seconds, 0);
  EXPECT_DOUBLE_EQ(time.communication_seconds, 3);
  EXPECT_DOUBLE_EQ(time.seconds(), 24);
}

TEST(StepModel, OnlyTheLastMicroBatchSends) {
  StepSettings settings = two_ranks();
  settings.micro_batches = 4;
  const StepTime time = predict_step(two_layers(), pair_of_ranks(0, 400), settings);
  EXPECT_DOUBLE_EQ(time.communication_seconds, 3);
  EXPECT_DOUBLE_EQ(time.seconds(), 4 * 9 + 1);
}

TEST(StepModel, WhereLatencyRulesEachBucketCostsTheSame) {
  const Fabric latency_only = pair_of_ranks(1, std::numeric_limits<double>::infinity());
  StepSettings settings = two_ranks();
  settings.overlap = false;
  EXPECT_DOUBLE_EQ(predict_step(two_layers(), latency_only, settings).exposed_reduce_seconds, 4);
  settings.bucket_bytes = 1200;
  EXPECT_DOUBLE_EQ(predict_step(two_layers(), latency_only, settings).exposed_reduce_seconds, 2);
}

TEST(StepModel, SixteenBitsOnTheWayTakeHalfTheTime) {
  StepSettings settings = two_ranks();
  settings.wire_bytes = 2;
  const StepTime time = predict_step(two_layers(), pair_of_ranks(0, 400), settings);
  EXPECT_EQ(time.buckets, 2u);
  EXPECT_DOUBLE_EQ(time.communication_seconds, 1.5);
}

TEST(StepModel, AgreementsAreNeverHidden) {
  StepSettings settings = two_ranks();
  settings.agreements = 3;
  const Fabric latency_only = pair_of_ranks(0.25, std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ(predict_step(two_layers(), latency_only, settings).agreement_seconds, 1.5);
}

TEST(StepModel, ShardsScatterHalfTheBytesAndGatherThemIntoTheNextForward) {
  StepSettings settings = two_ranks();
  settings.shard = Shard::kWorld;
  // Scattered in 1 s and 0.5 s; gathered first layer first: 0.5 s, which the forward pass waits
  // for, and 1 s, while the first layer computes.
  const StepTime time = predict_step(two_layers(), pair_of_ranks(0, 400), settings);
  EXPECT_DOUBLE_EQ(time.exposed_reduce_seconds, 0.5);
  EXPECT_DOUBLE_EQ(time.exposed_gather_seconds, 0.5);
  EXPECT_DOUBLE_EQ(time.communication_seconds, 3);
}

TEST(StepModel, ParametersOf16BitsAreGatheredInHalfTheTime) {
  StepSettings settings = two_ranks();
  settings.shard = Shard::kWorld;
  settings.parameter_bytes = 2;
  const StepTime time = predict_step(two_layers(), pair_of_ranks(0, 400), settings);
  EXPECT_DOUBLE_EQ(time.exposed_reduce_seconds, 0.5);
  EXPECT_DOUBLE_EQ(time.exposed_gather_seconds, 0.25);
  EXPECT_DOUBLE_EQ(time.communication_seconds, 1.5 + 0.75);
}

TEST(StepModel, AGatherHidesBehindTheForwardPassOfLayersBefore) {
  StepSettings settings = two_ranks();
  settings.shard = Shard::kWorld;
  // A layer without parameters in front hides the first; the second ends at 6 s, the layers before
  // it at 1.5 + 2 s.
  std::vector<Layer> layers = two_layers();
  layers.front().operations.front().forward_seconds = 0.5;
  layers.insert(layers.begin(), Layer{{{2, {}}}});
  const StepTime time = predict_step(layers, pair_of_ranks(0, 100), settings);
  EXPECT_DOUBLE_EQ(time.exposed_gather_seconds, 6 - 2.5);
  EXPECT_EQ(predict_step(layers, pair_of_ranks(0, 1000), settings).exposed_gather_seconds, 0);
  settings.overlap_gather = false;
  EXPECT_DOUBLE_EQ(predict_step(layers, pair_of_ranks(0, 100), settings).exposed_gather_seconds, 6);
}

TEST(StepModel, ALayerWaitsForAllBucketsThatHoldSomethingOfIt) {
  StepSettings settings = two_ranks();
  settings.shard = Shard::kWorld;
  settings.bucket_bytes = 4 * 200;
  const std::vector<Layer> layers = {{{{1, {100, 60}}}}, {{{2, {200}}}}};
  // Buckets of 200 and 160, gathered in 1.25 s and, before that, 1 s, then 1 s of work.
  EXPECT_DOUBLE_EQ(predict_step(layers, pair_of_ranks(0, 320), settings).exposed_gather_seconds,
                   1 + 1.25 - 1);
  settings.bucket_bytes = 4 * 260;
  // Buckets of 260, with a part of the first layer, and 100: that layer waits for both.
  EXPECT_DOUBLE_EQ(predict_step(layers, pair_of_ranks(0, 320), settings).exposed_gather_seconds,
                   360 * 4 / 2 / 320.0);
}

TEST(StepModel, BucketsAreFilledUpToAMultipleOfTheRanksThatShareThem) {
  StepSettings settings = two_ranks();
  settings.shard = Shard::kWorld;
  const std::vector<Layer> odd = {{{{1, {101}}}}};
  // 102 elements: 204 bytes scattered, 204 gathered.
  EXPECT_DOUBLE_EQ(predict_step(odd, pair_of_ranks(0, 204), settings).communication_seconds, 2);
}

TEST(StepModel, ShardsOfAHostAreSummedBetweenHostsWhileTheNextAreScattered) {
  Fabric fabric = pair_of_ranks(0, 400);  // scattered in 1 s and 0.5 s
  fabric.between.bytes_per_second = 100;  // slices of 400 and 200 bytes: 4 s and 2 s over 2 hosts
  StepSettings settings = two_ranks();
  settings.ranks = 4;
  settings.shard = Shard::kNode;
  // Scattered at 5 s and 6.5 s, summed at 9 s and 11 s; backward ends at 6 s. Gathered in the host.
  const StepTime time = predict_step(two_layers(), fabric, settings);
  EXPECT_DOUBLE_EQ(time.exposed_reduce_seconds, 5);
  EXPECT_DOUBLE_EQ(time.exposed_gather_seconds, 0.5);
  EXPECT_DOUBLE_EQ(time.communication_seconds, 1.5 + 6 + 1.5);
}

TEST(EncoderWork, CountsTheParametersOfRoberta) {
  // Of Hugging Face's RobertaForMaskedLM, as published.
  EXPECT_EQ(parameter_count(named_shape("base")), 124697433);
  EXPECT_EQ(parameter_count(named_shape("large")), 355412057);
  EXPECT_THROW(named_shape("huge"), std::invalid_argument);
}

TEST(EncoderWork, CountsOperationsPerToken) {
  EncoderShape shape = named_shape("base");
  const MicroBatch batch{3, 128, 0.15};
  const double hidden = 768, vocab = 50265;
  const double expected = 12 * (24 * hidden * hidden + 4 * 128 * hidden) +
                          0.15 * (2 * hidden * hidden + 2 * hidden * vocab);
  EXPECT_NEAR(forward_operations(shape, batch) / (3 * 128) / expected, 1, 1e-12);
}

TEST(EncoderWork, NoLayerIsFasterThanItsKernelsAreLaunched) {
  const EncoderShape shape = named_shape("base");
  const auto forward = [&](double speed) {
    double seconds = 0;
    for (const Layer& layer : layers_of(shape, {1, 512}, speed, 1)) {
      for (const Operation& operation : layer.operations) seconds += operation.forward_seconds;
    }
    return seconds;
  };
  EXPECT_NEAR(forward(1e30), 13, 1e-9);  // twelve layers and the head
  EXPECT_NEAR(forward(1) / forward_operations(shape, {1, 512}), 1, 1e-12);
}

TEST(EncoderWork, StateIsThatOfTheTable) {
  EXPECT_DOUBLE_EQ(state_bytes(1, {false}, 1), 16);
  EXPECT_DOUBLE_EQ(state_bytes(1, {false}, 8), 4 + 4 + 1);
  EXPECT_DOUBLE_EQ(state_bytes(1, {true}, 1), 2 + 4 + 4 + 8);
  EXPECT_DOUBLE_EQ(state_bytes(1, {true}, 4), 2 + 4 + 3);
}

TEST(EncoderWork, UpdatesMoveTheirShare) {
  EXPECT_DOUBLE_EQ(update_bytes(1, {false}, 1), 4 + 4 + 28);
  EXPECT_DOUBLE_EQ(update_bytes(1, {true}, 2), 4 + (4 + 28 + 6) / 2.0);
}

}  // namespace
}  // namespace tupelo::bench
