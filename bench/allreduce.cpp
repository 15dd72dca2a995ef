// How long a sum over ranks takes, by size and by the way that bytes travel.
#include <mpi.h>

#include <cstdio>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

#include "bench/arguments.h"
#include "bench/run_bench.h"
#include "bench/samples.h"
#include "distributed/backends.h"
#include "distributed/runtime.h"

namespace tupelo::bench {
namespace {

using Clock = std::chrono::steady_clock;

// A way of summing a tensor over ranks, in place.
struct Way {
  std::string name;
  std::function<void(const torch::Tensor&)> sum;
  std::vector<Samples> seconds = {};  // by size
};

class Benchmark {
 public:
  Benchmark(Communicator& communicator, std::vector<Way> ways, const Arguments& arguments,
            torch::Device device)
      : communicator_(communicator), ways_(std::move(ways)), arguments_(arguments) {
    const auto largest = arguments.number("--largest-bytes");
    for (std::int64_t bytes = 4; bytes < largest; bytes *= 8) {
      tensors_.push_back(torch::zeros({bytes / 4}, device));
    }
    tensors_.push_back(torch::zeros({largest / 4}, device));
    for (auto& way : ways_) way.seconds.resize(tensors_.size());
  }

  void run() {
    // Round 0 brings memory and connections in and does not count.
    for (std::int64_t round = 0; round <= arguments_.number("--rounds"); ++round) {
      for (std::size_t size = 0; size < tensors_.size(); ++size) {
        for (std::size_t i = 0; i < ways_.size(); ++i) {
          auto& way = ways_[(static_cast<std::size_t>(round) + i) % ways_.size()];
          const double slowest = communicator_.max(seconds_of(way, tensors_[size]));
          if (round > 0) way.seconds[size].values.push_back(slowest);
        }
      }
    }
    if (communicator_.rank() == 0) arguments_.json() ? print_json() : print_table();
  }

 private:
  double seconds_of(const Way& way, const torch::Tensor& tensor) {
    const auto bytes = tensor.nbytes();
    const int repeats = bytes < (1 << 16) ? 50 : bytes < (1 << 22) ? 5 : 1;
    communicator_.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < repeats; ++i) way.sum(tensor);
    if (tensor.is_cuda()) communicator_.barrier();
    return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
  }

  // 2 (n - 1) / n times the data passes each rank, whatever the algorithm.
  double bus_gigabytes_per_second(const Way& way, std::size_t size) const {
    const double ranks = communicator_.world_size();
    return 2.0 * (ranks - 1) / ranks * static_cast<double>(tensors_[size].nbytes()) /
           way.seconds[size].min() / 1e9;
  }

  // How many times as long the first way takes.
  double gain(const Way& way, std::size_t size) const {
    return ways_.front().seconds[size].median() / way.seconds[size].median();
  }

  void print_table() const {
    std::printf("all_reduce of float32, %d ranks\n%12s %-14s %12s %12s %10s %8s\n",
                communicator_.world_size(), "bytes", "way", "min us", "median us", "bus GB/s",
                "gain");
    for (std::size_t size = 0; size < tensors_.size(); ++size) {
      for (const auto& way : ways_) {
        std::printf("%12lld %-14s %12.1f %12.1f %10.3f %8.2f\n",
                    static_cast<long long>(tensors_[size].nbytes()), way.name.c_str(),
                    way.seconds[size].min() * 1e6, way.seconds[size].median() * 1e6,
                    bus_gigabytes_per_second(way, size), gain(way, size));
      }
    }
  }

  void print_json() const {
    for (std::size_t size = 0; size < tensors_.size(); ++size) {
      for (const auto& way : ways_) {
        std::printf(
            "{\"bench\": \"allreduce\", \"way\": \"%s\", \"ranks\": %d, \"bytes\": %lld, "
            "\"min_seconds\": %.9f, \"median_seconds\": %.9f, \"bus_gigabytes_per_second\": %.4f, "
            "\"gain\": %.4f}\n",
            way.name.c_str(), communicator_.world_size(),
            static_cast<long long>(tensors_[size].nbytes()), way.seconds[size].min(),
            way.seconds[size].median(), bus_gigabytes_per_second(way, size), gain(way, size));
      }
    }
  }

  Communicator& communicator_;
  std::vector<Way> ways_;
  const Arguments& arguments_;
  std::vector<torch::Tensor> tensors_;
};

Way way_of(std::string name, Communicator& communicator) {
  return {std::move(name), [&communicator](const torch::Tensor& tensor) {
            communicator.all_reduce(tensor)->wait();
          }};
}

void run_local(const Arguments& arguments) {
  auto world = make_local_world(static_cast<int>(arguments.number("--threads")));
  std::vector<std::thread> threads;
  for (auto& rank : world) {
    threads.emplace_back(
        [&] { Benchmark(*rank, {way_of("local", *rank)}, arguments, torch::kCPU).run(); });
  }
  for (auto& thread : threads) thread.join();
}

// Ranks 0, 1, 2, ... on hosts of as many ranks as asked for; 0: where they are.
std::vector<int> placement(const Runtime& runtime, std::int64_t ranks_per_host) {
  if (ranks_per_host == 0) return runtime.host_of_rank();
  std::vector<int> hosts;
  for (int rank = 0; rank < runtime.world_size(); ++rank) {
    hosts.push_back(rank / static_cast<int>(ranks_per_host));
  }
  return hosts;
}

// The library's own, which does not say in which order it adds.
void library_sum(const torch::Tensor& tensor) {
  MPI_Allreduce(MPI_IN_PLACE, tensor.data_ptr(), static_cast<int>(tensor.numel()), MPI_FLOAT,
                MPI_SUM, MPI_COMM_WORLD);
}

void run_mpi(const Runtime& runtime, const Arguments& arguments) {
  const std::map<std::string, Route> routes = {{"messages", Route::kMessages},
                                               {"shared", Route::kShared},
                                               {"hierarchical", Route::kHierarchical}};
  const auto hosts = placement(runtime, arguments.number("--ranks-per-host"));
  const auto control = make_mpi_communicator(runtime);
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::vector<Way> ways;
  std::istringstream names(arguments.text("--ways"));
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "library") {
      ways.push_back({name, library_sum});
      continue;
    }
    const auto route = routes.find(name);
    if (route == routes.end()) {
      throw std::invalid_argument("--ways are messages, shared, hierarchical and library");
    }
    communicators.push_back(
        make_mpi_communicator(runtime, {.route = route->second, .host_of_rank = hosts}));
    ways.push_back(way_of(name, *communicators.back()));
  }
  Benchmark(*control, std::move(ways), arguments, torch::kCPU).run();
}

void run(const Arguments& arguments) {
  const std::string& backend = arguments.text("--backend");
  if (backend == "local") return run_local(arguments);
  const Runtime runtime;
  if (backend == "mpi") return run_mpi(runtime, arguments);
  if (backend != "nccl") throw std::invalid_argument("--backend is local, mpi or nccl");
  const int device = runtime.local_rank();
  const auto ranks = make_nccl_communicator(runtime, device);
  Benchmark(*ranks, {way_of("nccl", *ranks)}, arguments,
            {torch::kCUDA, static_cast<torch::DeviceIndex>(device)})
      .run();
}

}  // namespace
}  // namespace tupelo::bench

int main(int argc, char** argv) {
  return tupelo::bench::run_bench("allreduce", argc, argv,
                                  {{"--backend", "mpi"},
                                   {"--ways", "messages,shared,library"},
                                   {"--ranks-per-host", "0"},
                                   {"--threads", "2"},
                                   {"--rounds", "7"},
                                   {"--largest-bytes", "100000000"}},
                                  tupelo::bench::run);
}
