// How long a sum over ranks takes, by size and backend.
#include <cstdio>
#include <functional>
#include <iostream>
#include <thread>

#include "bench/arguments.h"
#include "bench/samples.h"
#include "distributed/backends.h"
#include "distributed/mpi_runtime.h"

namespace tupelo::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Row {
  torch::Tensor tensor;
  Samples seconds;

  std::int64_t bytes() const { return static_cast<std::int64_t>(tensor.nbytes()); }
  std::int64_t repeats() const { return bytes() < (1 << 16) ? 50 : bytes() < (1 << 22) ? 5 : 1; }

  // 2 (n - 1) / n times the data passes each rank, whatever the algorithm.
  double bus_gigabytes_per_second(int ranks) const {
    return 2.0 * (ranks - 1) / ranks * static_cast<double>(tensor.nbytes()) / seconds.min() / 1e9;
  }
};

double seconds_of(Communicator& communicator, const torch::Tensor& tensor, std::int64_t repeats) {
  communicator.barrier();
  const auto start = Clock::now();
  for (std::int64_t i = 0; i < repeats; ++i) communicator.all_reduce(tensor)->wait();
  if (tensor.is_cuda()) communicator.barrier();
  return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(repeats);
}

std::vector<Row> measure(Communicator& communicator, const Arguments& arguments,
                         torch::Device device) {
  const auto largest = arguments.number("--largest-bytes");
  std::vector<Row> rows;
  for (std::int64_t bytes = 4; bytes < largest; bytes *= 8) {
    rows.push_back({torch::zeros({bytes / 4}, device), {}});
  }
  rows.push_back({torch::zeros({largest / 4}, device), {}});
  // Round 0 brings memory and connections in and does not count.
  for (std::int64_t round = 0; round <= arguments.number("--rounds"); ++round) {
    for (auto& row : rows) {
      const double seconds = seconds_of(communicator, row.tensor, row.repeats());
      const double slowest = communicator.max(seconds);
      if (round > 0) row.seconds.values.push_back(slowest);
    }
  }
  return rows;
}

void print_table(const std::string& backend, int ranks, const std::vector<Row>& rows) {
  std::printf("all_reduce of float32, backend %s, %d ranks\n%14s %14s %14s %12s\n", backend.c_str(),
              ranks, "bytes", "min us", "median us", "bus GB/s");
  for (const auto& row : rows) {
    std::printf("%14lld %14.1f %14.1f %12.3f\n", static_cast<long long>(row.bytes()),
                row.seconds.min() * 1e6, row.seconds.median() * 1e6,
                row.bus_gigabytes_per_second(ranks));
  }
}

void print_json(const std::string& backend, int ranks, const std::vector<Row>& rows) {
  for (const auto& row : rows) {
    std::printf(
        "{\"bench\": \"allreduce\", \"backend\": \"%s\", \"ranks\": %d, \"bytes\": %lld, "
        "\"min_seconds\": %.9f, \"median_seconds\": %.9f, \"bus_gigabytes_per_second\": %.4f}\n",
        backend.c_str(), ranks, static_cast<long long>(row.bytes()), row.seconds.min(),
        row.seconds.median(), row.bus_gigabytes_per_second(ranks));
  }
}

void run_rank(Communicator& communicator, const Arguments& arguments, torch::Device device) {
  const auto rows = measure(communicator, arguments, device);
  if (communicator.rank() != 0) return;
  const auto print = arguments.json() ? print_json : print_table;
  print(communicator.backend(), communicator.world_size(), rows);
}

void run_local(const Arguments& arguments) {
  auto world = make_local_world(static_cast<int>(arguments.number("--threads")));
  std::vector<std::thread> threads;
  for (auto& communicator : world) {
    threads.emplace_back([&] { run_rank(*communicator, arguments, torch::kCPU); });
  }
  for (auto& thread : threads) thread.join();
}

void run(const Arguments& arguments) {
  const std::string& backend = arguments.text("--backend");
  if (backend == "local") return run_local(arguments);
  const MpiRuntime runtime;
  if (backend == "mpi") return run_rank(*make_mpi_communicator(runtime), arguments, torch::kCPU);
  if (backend != "nccl") throw std::invalid_argument("--backend is local, mpi or nccl");
  const int device = runtime.local_rank();
  run_rank(*make_nccl_communicator(runtime, device), arguments,
           {torch::kCUDA, static_cast<torch::DeviceIndex>(device)});
}

}  // namespace
}  // namespace tupelo::bench

int main(int argc, char** argv) {
  try {
    tupelo::bench::run({argc,
                        argv,
                        {{"--backend", "mpi"},
                         {"--threads", "2"},
                         {"--rounds", "7"},
                         {"--largest-bytes", "100000000"}}});
  } catch (const std::exception& error) {
    std::cerr << "allreduce: " << error.what() << "\n";
    return 2;
  }
}
