// Which ranks share the optimizer's state of a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "distributed/communicator.h"

namespace tupelo {

// Every rank of the run is in one group of ranks that hold slices together. All outlive what works
// with them.
struct ShardGroups {
  Communicator& world;
  Communicator* shards = nullptr;    // those that hold the other slices; null: nothing is sharded
  Communicator* replicas = nullptr;  // those that hold the same slice; null: there are no others
};

// By rank: the ranks of its host, in order; and the ranks at its place on all hosts, in the order
// of hosts. `host_of_rank` as Runtime gives it. Throws std::invalid_argument when hosts do not
// run equally many ranks, naming `hosts` (by rank) that differ.
struct NodeGroups {
  std::vector<int> neighbours, peers;
};
NodeGroups node_groups(const std::vector<int>& host_of_rank, const std::vector<std::string>& hosts,
                       int rank);

}  // namespace tupelo
