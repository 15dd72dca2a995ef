// Ranks as threads of the test process.
#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "distributed/backends.h"

namespace tupelo::testing {

// Runs `body` for each rank of a local world, on a thread that owns its communicator, and returns
// what each of them threw (null: nothing), by rank.
inline std::vector<std::exception_ptr> run_ranks(int world_size,
                                                 const std::function<void(Communicator&)>& body,
                                                 CommunicatorOptions options = {}) {
  auto world = make_local_world(world_size, options);
  std::vector<std::exception_ptr> failures(world.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < world.size(); ++rank) {
    threads.emplace_back(
        [&body, &failure = failures[rank], own = std::move(world[rank])]() mutable {
          try {
            const auto communicator = std::move(own);
            body(*communicator);
          } catch (...) {
            failure = std::current_exception();
          }
        });
  }
  for (auto& thread : threads) thread.join();
  return failures;
}

}  // namespace tupelo::testing
