// A program whose ranks misbehave as the first argument says, in collectives that go the way of the
// second; mpi_faults_test.cpp looks at what becomes of the job. Collectives may take 2 s, or half
// an hour where the job must end sooner by itself.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "distributed/backends.h"
#include "distributed/runtime.h"

namespace tupelo {
namespace {

constexpr std::chrono::seconds kShort{2};
constexpr std::chrono::minutes kLong{30};
constexpr int kTimedOut = 7;

const std::map<std::string, Route> kRoutes = {{"auto", Route::kAuto},
                                              {"messages", Route::kMessages},
                                              {"shared", Route::kShared},
                                              {"hierarchical", Route::kHierarchical}};

struct Job {
  const Runtime& runtime;
  Route route;

  // In a hierarchy the last rank is on a host of its own.
  std::unique_ptr<Communicator> communicator(std::chrono::milliseconds timeout) const {
    std::vector<int> hosts(static_cast<std::size_t>(runtime.world_size()), 0);
    if (route == Route::kHierarchical) hosts.back() = 1;
    return make_mpi_communicator(runtime,
                                 {.timeout = timeout, .route = route, .host_of_rank = hosts});
  }
  int rank() const { return runtime.rank(); }
};

void say(const Job& job, const std::string& text) {
  std::cout << "rank " + std::to_string(job.rank()) + ": " + text + "\n" << std::flush;
}

[[noreturn]] void stay_away() {
  while (true) pause();
}

// Reports how the collectives of the others fail, and that the communicator is of no use
// afterwards.
int expect_timeout(const Job& job, Communicator& communicator,
                   const std::function<void()>& collective) {
  try {
    collective();
  } catch (const CommunicationTimeout& timeout) {
    say(job, timeout.what());
    try {
      communicator.barrier();
    } catch (const CommunicationTimeout&) {
      say(job, "still dead");
    }
    return kTimedOut;
  }
  say(job, "the collective succeeded");
  return 0;
}

// Rank 1 never joins; the others leave main() in an orderly way, communicator and runtime included.
int stuck_rank(const Job& job) {
  const auto communicator = job.communicator(kShort);
  communicator->barrier();
  if (job.rank() == 1) stay_away();
  auto tensor = torch::ones({5});
  return expect_timeout(job, *communicator, [&] { communicator->all_reduce(tensor)->wait(); });
}

int stuck_rank_large(const Job& job) {
  const auto communicator = job.communicator(kShort);
  communicator->barrier();
  if (job.rank() == 1) stay_away();
  auto tensor = torch::ones({5000000});
  return expect_timeout(job, *communicator, [&] {
    const auto queued = communicator->all_reduce(tensor);
    communicator->all_reduce(torch::ones({5}))->wait();
  });
}

// Rank 1 is done, and waits for the others in MPI_Finalize.
int early_leaver(const Job& job) {
  const auto communicator = job.communicator(kShort);
  communicator->barrier();
  if (job.rank() == 1) return 0;
  return expect_timeout(job, *communicator, [&] { communicator->sum(1.0); });
}

int never_created(const Job& job) {
  if (job.rank() == 1) stay_away();
  try {
    job.communicator(kShort);
  } catch (const CommunicationTimeout& timeout) {
    say(job, timeout.what());
    return kTimedOut;
  }
  return 0;
}

int different_collectives(const Job& job) {
  const auto communicator = job.communicator(kLong);
  try {
    communicator->all_reduce(torch::ones({job.rank() == 1 ? 6 : 5}))->wait();
  } catch (const CommunicationError& error) {
    say(job, error.what());
    return kTimedOut;
  }
  return 0;
}

// The last rank does something else than an all_reduce.
int another_kind(const Job& job) {
  const auto communicator = job.communicator(kLong);
  try {
    if (job.rank() == job.runtime.world_size() - 1) communicator->barrier();
    communicator->all_reduce(torch::ones({5}))->wait();
  } catch (const CommunicationError& error) {
    say(job, error.what());
    return kTimedOut;
  }
  return 0;
}

// Rank 1 is stopped in the middle of a stream of large sums.
int stopped(const Job& job) {
  const auto communicator = job.communicator(kShort);
  auto tensor = torch::ones({3000000});
  return expect_timeout(job, *communicator, [&] {
    for (int i = 0;; ++i) {
      const auto work = communicator->all_reduce(tensor);
      if (i == 3 && job.rank() == 1) std::raise(SIGSTOP);
      work->wait();
    }
  });
}

// No memory is given for sharing.
int no_memory(const Job& job) {
  std::signal(SIGXFSZ, SIG_IGN);
  if (job.rank() == 1) {
    const rlimit limit{1 << 19, 1 << 19};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  try {
    const auto communicator = job.communicator(kShort);
    if (communicator->sum(1.0) == job.runtime.world_size()) say(job, communicator->route());
  } catch (const CommunicationError& error) {
    say(job, error.what());
    return kTimedOut;
  }
  return 0;
}

// Says which files of shared memory this process has mapped, and whether they have names.
void list_shared_memory(const Job& job) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto at = line.find("/memfd:tupelo-");
    if (at == std::string::npos) continue;
    const bool is_gone = line.find("(deleted)") != std::string::npos;
    say(job, std::string("shares memory ") + (is_gone ? "without a name" : "under a name"));
  }
}

void wait_for_the_others(const Job& job, const std::function<void()>& misbehave) {
  const auto communicator = job.communicator(kLong);
  communicator->barrier();
  list_shared_memory(job);
  const auto in_flight = communicator->all_reduce(torch::ones({3000000}));
  in_flight->wait();
  const auto left_open = communicator->all_reduce(torch::ones({3000000}));
  if (job.rank() == 1) misbehave();
  left_open->wait();
  communicator->sum(1.0);
}

int kill_9(const Job& job) {
  wait_for_the_others(job, [] { std::raise(SIGKILL); });
  return 0;
}

int abort_75(const Job& job) {
  wait_for_the_others(job, [&] { job.runtime.abort(75); });
  return 0;
}

int exception(const Job& job) {
  wait_for_the_others(job, [] { throw std::runtime_error("out of luck"); });
  return 0;
}

const std::map<std::string, int (*)(const Job&)> kScenarios = {
    {"stuck_rank", stuck_rank},
    {"stuck_rank_large", stuck_rank_large},
    {"early_leaver", early_leaver},
    {"never_created", never_created},
    {"different_collectives", different_collectives},
    {"another_kind", another_kind},
    {"stopped", stopped},
    {"no_memory", no_memory},
    {"kill_9", kill_9},
    {"abort_75", abort_75},
    {"exception", exception}};

}  // namespace
}  // namespace tupelo

int main(int, char** argv) {
  try {
    const tupelo::Runtime runtime;
    return tupelo::kScenarios.at(argv[1])({runtime, tupelo::kRoutes.at(argv[2])});
  } catch (const std::exception& error) {
    std::cout << "main: " << error.what() << "\n" << std::flush;
    return 9;
  }
}
