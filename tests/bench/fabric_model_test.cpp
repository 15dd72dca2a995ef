#include "bench/fabric_model.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace tupelo::bench {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Links that differ in every number, so that none can stand for another.
Fabric sample_fabric() {
  Fabric fabric;
  fabric.name = "sample";
  fabric.ranks_per_host = 4;
  fabric.launch_seconds = 100;
  fabric.inside = {1, 0.5, 1000};
  fabric.between = {7, 11, 10};
  return fabric;
}

void expect_way(const Way& way, double inside_hops, double between_hops, double inside_share,
                double between_share) {
  EXPECT_DOUBLE_EQ(way.inside_hops, inside_hops);
  EXPECT_DOUBLE_EQ(way.between_hops, between_hops);
  EXPECT_DOUBLE_EQ(way.inside_share, inside_share);
  EXPECT_DOUBLE_EQ(way.between_share, between_share);
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(FabricModel, RingsCarryTheirFactorsInsideAHost) {
  expect_way(way_of(Collective::kAllReduce, {1, 4}, Algorithm::kRing), 6, 0, 1.5, 0);
  expect_way(way_of(Collective::kReduceScatter, {1, 4}, Algorithm::kRing), 3, 0, 0.75, 0);
  expect_way(way_of(Collective::kAllGather, {1, 4}, Algorithm::kRing), 3, 0, 0.75, 0);
}

TEST(FabricModel, RingsOfSeveralHostsLeaveEachOfThemOnce) {
  expect_way(way_of(Collective::kAllReduce, {2, 4}, Algorithm::kRing), 10, 4, 1.75, 1.75 / 4);
  expect_way(way_of(Collective::kReduceScatter, {2, 4}, Algorithm::kRing), 5, 2, 0.875, 0.875 / 4);
}

TEST(FabricModel, RingsOfOneRankPerHostKnowOnlyLinksBetween) {
  expect_way(way_of(Collective::kAllReduce, {8, 1}, Algorithm::kRing), 0, 14, 0, 1.75);
}

TEST(FabricModel, TreesHaveTheDepthOfTheLogarithmOfHosts) {
  expect_way(way_of(Collective::kAllReduce, {8, 4}, Algorithm::kTree), 6, 6, 1.5, 1.75 / 4);
  expect_way(way_of(Collective::kAllReduce, {5, 1}, Algorithm::kTree), 0, 6, 0, 1.6);
}

TEST(FabricModel, OnlySumsTakeTheTree) {
  expect_way(way_of(Collective::kAllGather, {2, 4}, Algorithm::kTree), 5, 2, 0.875, 0.875 / 4);
}

TEST(FabricModel, LatenciesAddUpAndTheSlowerLinksDecideForBytes) {
  // Inside 10 hops and 1.75 * 80 / 1000 s; between 4 hops of 7 s and 0.4375 * 80 / 10 s.
  EXPECT_DOUBLE_EQ(
      collective_seconds(Collective::kAllReduce, {2, 4}, 80, sample_fabric(), Algorithm::kRing),
      100 + 10 + 28 + 3.5);
  Fabric slow_inside = sample_fabric();
  slow_inside.inside.bytes_per_second = 1;
  EXPECT_DOUBLE_EQ(
      collective_seconds(Collective::kAllReduce, {2, 4}, 80, slow_inside, Algorithm::kRing),
      100 + 10 + 28 + 140);
}

TEST(FabricModel, TheBestOfSumsIsTheFasterOne) {
  // Over 64 hosts a ring of 256 takes 2 * 64 hops between them, a tree 12.
  const Group many{64, 4};
  const Fabric fabric = sample_fabric();
  const auto seconds = [&](Algorithm algorithm, double bytes) {
    return collective_seconds(Collective::kAllReduce, many, bytes, fabric, algorithm);
  };
  EXPECT_DOUBLE_EQ(seconds(Algorithm::kTree, 0), 100 + 6 * 0.5 + 12 * 11);
  EXPECT_EQ(seconds(Algorithm::kBest, 0), seconds(Algorithm::kTree, 0));
  // Two ranks of one host: two hops on either way, and those of the ring shorter here.
  Fabric short_ring = fabric;
  short_ring.inside.ring_hop_seconds = 0.25;
  EXPECT_DOUBLE_EQ(collective_seconds(Collective::kAllReduce, {1, 2}, 0, short_ring), 100.5);
}

TEST(FabricModel, OneRankHasNobodyToWaitFor) {
  for (const auto collective :
       {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather}) {
    EXPECT_EQ(collective_seconds(collective, {1, 1}, 1e9, sample_fabric()), 0);
  }
}

TEST(FabricModel, GroupsOfARunThatFillsHosts) {
  const Fabric fabric = sample_fabric();
  const Group world = world_group(12, fabric), host = host_group(12, fabric),
              replicas = replica_group(12, fabric);
  EXPECT_EQ(world.hosts, 3);
  EXPECT_EQ(world.per_host, 4);
  EXPECT_EQ(host.hosts, 1);
  EXPECT_EQ(host.per_host, 4);
  EXPECT_EQ(replicas.hosts, 3);
  EXPECT_EQ(replicas.per_host, 1);
  EXPECT_EQ(host_group(3, fabric).per_host, 3);
  EXPECT_EQ(replica_group(3, fabric).ranks(), 1);
}

TEST(FabricModel, RefusesRanksThatDoNotFillHosts) {
  EXPECT_EQ(refusal([] { world_group(6, sample_fabric()); }),
            "6 ranks do not fill hosts of 4; valid are up to 4, or a multiple of it");
  EXPECT_EQ(refusal([] { world_group(0, sample_fabric()); }), "a run has one rank or more, not 0");
}

TEST(FabricModel, FitFindsAlphaAndBetaAgain) {
  std::vector<Measurement> measurements;
  for (const double bytes : {4096.0, 32768.0, 2097152.0, 67108864.0}) {
    measurements.push_back({bytes, 12e-6 + bytes / 40e9});
  }
  const AlphaBeta fit = fit_alpha_beta(measurements);
  EXPECT_NEAR(fit.alpha_seconds, 12e-6, 1e-15);
  EXPECT_NEAR(fit.beta_seconds_per_byte, 1 / 40e9, 1e-20);
  EXPECT_NEAR(fit.worst_relative_error, 0, 1e-9);
}

TEST(FabricModel, FitWeighsRelativeErrorsAlike) {
  // Nothing but latency, 2 s and 4 s: the sum of (a / 2 - 1)^2 + (a / 4 - 1)^2 is least at 2.4.
  const AlphaBeta fit = fit_alpha_beta({{1, 4}, {2, 2}});
  EXPECT_NEAR(fit.alpha_seconds, 2.4, 1e-12);
  EXPECT_EQ(fit.beta_seconds_per_byte, 0);
  EXPECT_NEAR(fit.worst_relative_error, 0.4, 1e-12);
}

TEST(FabricModel, FitHasNoNegativeLatency) {
  // Twice the bytes take more than twice the time; (b - 1)^2 + (2 b / 4 - 1)^2 is least at 1.2.
  const AlphaBeta fit = fit_alpha_beta({{1, 1}, {2, 4}});
  EXPECT_EQ(fit.alpha_seconds, 0);
  EXPECT_NEAR(fit.beta_seconds_per_byte, 1.2, 1e-12);
}

TEST(FabricModel, FitRefusesWhatSaysNothing) {
  EXPECT_NE(refusal([] { fit_alpha_beta({}); }).find("two sizes or more"), std::string::npos);
  EXPECT_NE(refusal([] {
              fit_alpha_beta({{8, 1}, {8, 2}});
            }).find("two sizes or more"),
            std::string::npos);
  EXPECT_NE(refusal([] {
              fit_alpha_beta({{8, 1}, {9, 0}});
            }).find("valid is more than 0"),
            std::string::npos);
}

AlphaBeta sums_over(const Group& group, const Fabric& fabric) {
  std::vector<Measurement> measurements;
  for (const double bytes : {1e3, 1e6, 1e8}) {
    measurements.push_back({bytes, collective_seconds(Collective::kAllReduce, group, bytes, fabric,
                                                      Algorithm::kRing)});
  }
  return fit_alpha_beta(measurements);
}

TEST(FabricModel, CalibrationOnOneHostTellsTheTimesThatWereMeasured) {
  Fabric real = sample_fabric();
  real.launch_seconds = 0;
  real.inside = {3, 3, 500};
  const Fabric found = calibrated(sample_fabric(), {1, 4}, sums_over({1, 4}, real));
  EXPECT_EQ(found.launch_seconds, 0);  // it is in the latency
  EXPECT_EQ(found.ranks_per_host, 4);
  EXPECT_NEAR(found.inside.ring_hop_seconds, 3, 1e-6);
  EXPECT_NEAR(found.inside.bytes_per_second, 500, 1e-3);
}

TEST(FabricModel, CalibrationOnSeveralHostsTakesWhatIsInsideAsKnown) {
  const Fabric real = sample_fabric();
  Fabric guess = real;
  guess.between = {1000, 1000, kInfinite};
  const Fabric found = calibrated(guess, {3, 4}, sums_over({3, 4}, real));
  EXPECT_NEAR(found.between.ring_hop_seconds, 7, 1e-6);
  EXPECT_NEAR(found.between.bytes_per_second, 10, 1e-6);
  EXPECT_EQ(found.inside.ring_hop_seconds, real.inside.ring_hop_seconds);
  EXPECT_EQ(found.launch_seconds, real.launch_seconds);
}

TEST(FabricModel, CalibrationRefusesOneRank) {
  EXPECT_EQ(refusal([] {
              calibrated({}, {1, 1}, {1, 1, 0});
            }),
            "one rank says nothing about links; measure two or more");
}

TEST(FabricModel, NamesItsFabrics) {
  EXPECT_EQ(named_fabric("nvlink-400g").ranks_per_host, 8);
  EXPECT_EQ(refusal([] { named_fabric("token-ring"); }),
            "there is no fabric 'token-ring'; valid is nvlink-400g");
}

}  // namespace
}  // namespace tupelo::bench
