#include "distributed/topology.h"

#include <gtest/gtest.h>

namespace tupelo {
namespace {

using Ranks = std::vector<int>;

TEST(Topology, HostsAreInTheOrderOfTheirFirstRanks) {
  const Topology topology({7, 3, 7, 3, 3}, 3);
  EXPECT_EQ(topology.host_count(), 2);
  EXPECT_EQ(topology.ranks_of(0), (Ranks{0, 2}));
  EXPECT_EQ(topology.ranks_of(1), (Ranks{1, 3, 4}));
  EXPECT_EQ(topology.own_host(), 1);
  EXPECT_EQ(topology.own_place(), 1);
  EXPECT_EQ(topology.place_of(4), 2);
  EXPECT_EQ(topology.neighbours(), (Ranks{1, 3, 4}));
}

TEST(Topology, TheSmallestHostSaysHowManyCouriersThereAre) {
  const Ranks hosts = {0, 0, 0, 1, 1, 2, 2, 2};
  for (int rank = 0; rank < 8; ++rank) {
    const Topology topology(hosts, rank);
    EXPECT_EQ(topology.courier_count(), 2);
    EXPECT_EQ(topology.is_courier(), rank != 2 && rank != 7);
  }
  EXPECT_EQ(Topology(hosts, 4).peers(), (Ranks{1, 4, 6}));
}

TEST(Topology, KnowsWhetherAnyHostIsShared) {
  EXPECT_FALSE(Topology({0, 1, 2}, 0).has_shared_host());
  EXPECT_TRUE(Topology({0, 1, 0}, 0).has_shared_host());
  EXPECT_TRUE(Topology({0, 0}, 1).has_shared_host());
}

}  // namespace
}  // namespace tupelo
