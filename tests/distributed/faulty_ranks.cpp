// A program whose ranks misbehave as the first argument says; mpi_faults_test.cpp looks at what
// becomes of the job. Collectives may take 2 s, or half an hour where the job must end sooner by
// itself.
#include <unistd.h>

#include <csignal>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

#include "distributed/backends.h"
#include "distributed/mpi_runtime.h"

namespace tupelo {
namespace {

constexpr CommunicatorOptions kShort{.timeout = std::chrono::seconds(2)};
constexpr CommunicatorOptions kLong{.timeout = std::chrono::minutes(30)};
constexpr int kTimedOut = 7;

void say(const MpiRuntime& runtime, const std::string& text) {
  std::cout << "rank " + std::to_string(runtime.rank()) + ": " + text + "\n" << std::flush;
}

[[noreturn]] void stay_away() {
  while (true) pause();
}

// Reports how the collectives of the others fail, and that the communicator is of no use
// afterwards.
int expect_timeout(const MpiRuntime& runtime, Communicator& communicator,
                   const std::function<void()>& collective) {
  try {
    collective();
  } catch (const CommunicationTimeout& timeout) {
    say(runtime, timeout.what());
    try {
      communicator.barrier();
    } catch (const CommunicationTimeout&) {
      say(runtime, "still dead");
    }
    return kTimedOut;
  }
  say(runtime, "the collective succeeded");
  return 0;
}

// Rank 1 never joins; the others leave main() in an orderly way, communicator and runtime included.
int stuck_rank(const MpiRuntime& runtime) {
  const auto communicator = make_mpi_communicator(runtime, kShort);
  communicator->barrier();
  if (runtime.rank() == 1) stay_away();
  auto tensor = torch::ones({5});
  return expect_timeout(runtime, *communicator, [&] { communicator->all_reduce(tensor)->wait(); });
}

int stuck_rank_large(const MpiRuntime& runtime) {
  const auto communicator = make_mpi_communicator(runtime, kShort);
  communicator->barrier();
  if (runtime.rank() == 1) stay_away();
  auto tensor = torch::ones({5000000});
  return expect_timeout(runtime, *communicator, [&] {
    const auto queued = communicator->all_reduce(tensor);
    communicator->all_reduce(torch::ones({5}))->wait();
  });
}

// Rank 1 is done, and waits for the others in MPI_Finalize.
int early_leaver(const MpiRuntime& runtime) {
  const auto communicator = make_mpi_communicator(runtime, kShort);
  communicator->barrier();
  if (runtime.rank() == 1) return 0;
  return expect_timeout(runtime, *communicator, [&] { communicator->sum(1.0); });
}

int never_created(const MpiRuntime& runtime) {
  if (runtime.rank() == 1) stay_away();
  try {
    make_mpi_communicator(runtime, kShort);
  } catch (const CommunicationTimeout& timeout) {
    say(runtime, timeout.what());
    return kTimedOut;
  }
  return 0;
}

int different_collectives(const MpiRuntime& runtime) {
  const auto communicator = make_mpi_communicator(runtime, kLong);
  try {
    communicator->all_reduce(torch::ones({runtime.rank() == 1 ? 6 : 5}))->wait();
  } catch (const CommunicationError& error) {
    say(runtime, error.what());
    return kTimedOut;
  }
  return 0;
}

void wait_for_the_others(const MpiRuntime& runtime, const std::function<void()>& misbehave) {
  const auto communicator = make_mpi_communicator(runtime, kLong);
  communicator->barrier();
  const auto in_flight = communicator->all_reduce(torch::ones({3000000}));
  in_flight->wait();
  const auto left_open = communicator->all_reduce(torch::ones({3000000}));
  if (runtime.rank() == 1) misbehave();
  left_open->wait();
  communicator->sum(1.0);
}

int kill_9(const MpiRuntime& runtime) {
  wait_for_the_others(runtime, [] { std::raise(SIGKILL); });
  return 0;
}

int abort_75(const MpiRuntime& runtime) {
  wait_for_the_others(runtime, [&] { runtime.abort(75); });
  return 0;
}

int exception(const MpiRuntime& runtime) {
  wait_for_the_others(runtime, [] { throw std::runtime_error("out of luck"); });
  return 0;
}

const std::map<std::string, int (*)(const MpiRuntime&)> kScenarios = {
    {"stuck_rank", stuck_rank},
    {"stuck_rank_large", stuck_rank_large},
    {"early_leaver", early_leaver},
    {"never_created", never_created},
    {"different_collectives", different_collectives},
    {"kill_9", kill_9},
    {"abort_75", abort_75},
    {"exception", exception}};

}  // namespace
}  // namespace tupelo

int main(int, char** argv) {
  try {
    const tupelo::MpiRuntime runtime;
    return tupelo::kScenarios.at(argv[1])(runtime);
  } catch (const std::exception& error) {
    std::cout << "main: " << error.what() << "\n" << std::flush;
    return 9;
  }
}
