// Which start of a job its ranks belong to. Internal to distributed/.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tupelo {

// A store that a launcher keeps outlives ranks that it starts anew, and what they said; how often
// it has started them each host may count in another way. So rank 0 makes up a name, which each
// rank takes only in answer to a word of its own. Collective. Throws CommunicationTimeout that
// names who has not come.
std::string agree_on_attempt(c10d::Store& store, int rank, int world_size,
                             std::chrono::milliseconds timeout);

}  // namespace tupelo
