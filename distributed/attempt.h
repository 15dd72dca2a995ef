// Which start of a job its ranks belong to. Internal to distributed/.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tupelo {

// A store that a launcher keeps outlives ranks that it starts anew, and holds what they said; hosts
// may count restarts differently. So rank 0 makes up a name, which each rank takes only in answer
// to a word of its own. Rank 0 waits for all others, they for rank 0. Throws CommunicationTimeout
// that names who has not come, c10::Error when the store is gone.
std::string agree_on_attempt(c10d::Store& store, int rank, int world_size,
                             std::chrono::milliseconds timeout);

}  // namespace tupelo
