#include <sys/prctl.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "distributed/backends.h"
#include "distributed/group.h"
#include "distributed/host_collectives.h"
#include "distributed/mpi_collectives.h"
#include "distributed/mpi_exchange.h"
#include "distributed/patience.h"
#include "distributed/rendezvous.h"
#include "distributed/runtime.h"
#include "distributed/shared_window.h"
#include "distributed/solo_communicator.h"
#include "distributed/topology.h"

namespace tupelo {
namespace {

struct Job {
  Collective collective;
  std::uint64_t sequence = 0;
  std::exception_ptr error;   // set before `done`
  std::atomic<int> done = 0;  // an int, since libstdc++ waits on those without a table of its own

  void finish(std::exception_ptr failure) {
    error = std::move(failure);
    done = 1;
    done.notify_all();
  }
};

// What the thread works with; never freed after a failure, since messages may still arrive.
struct Engine {
  Engine(const Runtime& runtime, const CommunicatorOptions& options,
         const std::shared_ptr<std::atomic<int>>& waiters)
      : patience(runtime.rank(), options.timeout, waiters), exchange(runtime, patience) {
    if (!options.members.empty()) {
      use_messages("mpi in messages", options.members);
      return;
    }
    const auto& hosts =
        options.host_of_rank.empty() ? runtime.host_of_rank() : options.host_of_rank;
    TORCH_CHECK(static_cast<int>(hosts.size()) == runtime.world_size(), "host_of_rank names ",
                hosts.size(), " ranks of ", runtime.world_size());
    choose_way(runtime, Topology(hosts, runtime.rank()), options.route);
  }

  void run(const Collective& collective, std::uint64_t sequence) {
    patience.begin(describe(collective), sequence);
    way->run(collective);
  }

  Patience patience;
  MpiExchange exchange;
  std::unique_ptr<CollectiveEngine> way;
  std::string route;

 private:
  void choose_way(const Runtime& runtime, const Topology& topology, Route wanted) {
    const bool is_useful = topology.host_count() == 1 || topology.has_shared_host();
    if (wanted == Route::kMessages || (wanted == Route::kAuto && !is_useful)) {
      return use_messages("mpi in messages");
    }
    if (wanted == Route::kShared && topology.host_count() > 1) {
      throw std::invalid_argument(
          "collectives through shared memory need all ranks on one host, but these are on " +
          std::to_string(topology.host_count()) + "; valid there: auto, messages, hierarchical");
    }
    std::string refusal;
    auto window = open_window(runtime, topology, refusal);
    if (!window && wanted != Route::kAuto) {
      throw CommunicationError("ranks of a host cannot share memory: " + refusal +
                               "; collectives in messages do without");
    }
    if (!window) return use_messages("mpi in messages, since " + refusal);
    route = topology.host_count() == 1
                ? "mpi through shared memory"
                : "mpi, hierarchical over " + std::to_string(topology.host_count()) + " hosts";
    way = std::make_unique<HostCollectives>(exchange, topology, std::move(window));
  }

  std::unique_ptr<SharedWindow> open_window(const Runtime& runtime, const Topology& topology,
                                            std::string& refusal) {
    patience.begin("creation of shared memory", 0);
    try {
      return SharedWindow::open(exchange, topology, HostCollectives::chunk_bytes(topology),
                                patience, refusal);
    } catch (...) {
      runtime.mark_broken();
      throw;
    }
  }

  void use_messages(std::string text, std::vector<int> members = {}) {
    route = std::move(text);
    way = std::make_unique<MpiCollectives>(exchange, std::move(members));
  }
};

template <typename T>
void keep_forever(T value) {
  static_cast<void>(new T(std::move(value)));
}

class MpiWork : public Work {
 public:
  MpiWork(std::shared_ptr<Job> job, std::shared_ptr<std::atomic<int>> waiters)
      : job_(std::move(job)), waiters_(std::move(waiters)) {}

  bool is_completed() const override { return job_->done != 0; }

  void wait() override {
    if (job_->done == 0) {
      ++*waiters_;
      job_->done.wait(0);
      --*waiters_;
    }
    if (job_->error) std::rethrow_exception(job_->error);
  }

 private:
  std::shared_ptr<Job> job_;
  std::shared_ptr<std::atomic<int>> waiters_;
};

class MpiCommunicator : public CollectiveCommunicator {
 public:
  MpiCommunicator(const Runtime& runtime, const CommunicatorOptions& options)
      : runtime_(runtime),
        exceptions_at_start_(std::uncaught_exceptions()),
        group_(Group::of(options.members, runtime.rank(), runtime.world_size())),
        engine_(std::make_unique<Engine>(runtime, options, waiters_)),
        route_(engine_->route),
        thread_([this] { work_off(); }) {}

  ~MpiCommunicator() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      if (engine_ && std::uncaught_exceptions() > exceptions_at_start_) engine_->patience.abandon();
    }
    changed_.notify_one();
    thread_.join();
  }

  std::string backend() const override { return "mpi"; }
  std::string route() const override { return route_; }
  int rank() const override { return group_.place; }
  int world_size() const override { return group_.size; }

 private:
  std::unique_ptr<Work> start(Collective collective) override {
    auto job = std::make_shared<Job>();
    job->collective = std::move(collective);
    {
      std::lock_guard lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
      job->sequence = next_sequence_++;
      queue_.push_back(job);
    }
    changed_.notify_one();
    return std::make_unique<MpiWork>(std::move(job), waiters_);
  }

  void work_off() {
    // Sleeps of a few microseconds are rounded up to 50 otherwise.
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    while (const auto job = next_job()) {
      try {
        engine_->run(job->collective, job->sequence);
        job->finish(nullptr);
      } catch (...) {
        return fail(*job, std::current_exception());
      }
    }
  }

  std::shared_ptr<Job> next_job() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return nullptr;
    auto job = std::move(queue_.front());
    queue_.pop_front();
    return job;
  }

  void fail(Job& job, const std::exception_ptr& failure) {
    runtime_.mark_broken();
    std::deque<std::shared_ptr<Job>> waiting;
    {
      std::lock_guard lock(mutex_);
      // MPI may still write to these, from whatever call makes progress next.
      keep_forever(std::pair(job.collective, std::move(engine_)));
      failure_ = failure;
      waiting.swap(queue_);
    }
    job.finish(failure);
    for (const auto& each : waiting) each->finish(failure);
  }

  const Runtime& runtime_;
  const int exceptions_at_start_;
  std::shared_ptr<std::atomic<int>> waiters_ = std::make_shared<std::atomic<int>>(0);
  const Group group_;
  std::unique_ptr<Engine> engine_;
  const std::string route_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> queue_;
  std::uint64_t next_sequence_ = 0;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const Runtime& runtime,
                                                    CommunicatorOptions options) {
  if (runtime.world_size() == 1 || options.members.size() == 1) {
    return make_solo_communicator("mpi");
  }
  return std::make_unique<MpiCommunicator>(runtime, options);
}

std::unique_ptr<Communicator> make_host_communicator(const Runtime& runtime,
                                                     CommunicatorOptions options) {
  if (Rendezvous* rendezvous = runtime.rendezvous()) return rendezvous->make_communicator(options);
  if (runtime.is_initialized()) return make_mpi_communicator(runtime, options);
  return std::move(make_local_world(1, options).front());
}

}  // namespace tupelo
