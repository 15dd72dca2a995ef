// A rank among those that its communicator spans. Internal to distributed/.
#pragma once

#include <c10/util/Exception.h>

#include <algorithm>
#include <vector>

#include "distributed/mpi_runtime.h"

namespace tupelo {

struct Group {
  int place = 0;
  int size = 1;

  // `members` as in CommunicatorOptions.
  static Group of(const std::vector<int>& members, const MpiRuntime& runtime) {
    if (members.empty()) return {runtime.rank(), runtime.world_size()};
    const auto own = std::find(members.begin(), members.end(), runtime.rank());
    TORCH_CHECK(own != members.end(), "rank ", runtime.rank(), " is not among the members ",
                "of the group it asks for");
    return {static_cast<int>(own - members.begin()), static_cast<int>(members.size())};
  }
};

}  // namespace tupelo
