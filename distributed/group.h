// A rank among those that its communicator spans. Internal to distributed/.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace tupelo {

struct Group {
  int place = 0;
  int size = 1;

  // `members` as in CommunicatorOptions, without the empty one; `rank` of the runtime.
  static Group of(const std::vector<int>& members, int rank) {
    const auto own = std::find(members.begin(), members.end(), rank);
    if (own == members.end()) {
      throw std::logic_error("rank " + std::to_string(rank) +
                             " is not among the members of the group that it asks for");
    }
    return {static_cast<int>(own - members.begin()), static_cast<int>(members.size())};
  }
  static Group of(const std::vector<int>& members, int rank, int world_size) {
    return members.empty() ? Group{rank, world_size} : of(members, rank);
  }
};

}  // namespace tupelo
