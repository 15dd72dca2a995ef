#include "launcher/cluster_probe.h"

#include <torch/cuda.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "launcher/rank_facts.h"
#include "launcher/run_folder.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Result = Finding::Result;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string rank_name(int rank, const std::vector<std::string>& hosts) {
  return "rank " + std::to_string(rank) + " (" + hosts[static_cast<std::size_t>(rank)] + ")";
}

// Values of all ranks, by rank.
std::vector<double> all_values(Communicator& communicator, double value) {
  std::vector<double> values(static_cast<std::size_t>(communicator.world_size()));
  values[static_cast<std::size_t>(communicator.rank())] = value;
  return communicator.sum(std::move(values));
}

// A network file system may show a change a little later than it was made.
constexpr auto kLongestDelay = std::chrono::seconds(5);

bool shows(const fs::path& file, const std::string& content) {
  const auto deadline = Clock::now() + kLongestDelay;
  while (true) {
    std::error_code error;
    if (fs::exists(file, error) && read_file(file) == content) return true;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// The files that the ranks write for each other.
class SharedFolderProbe {
 public:
  SharedFolderProbe(Communicator& communicator, const std::vector<std::string>& hosts,
                    fs::path folder)
      : communicator_(communicator), hosts_(hosts), folder_(std::move(folder)) {
    std::random_device entropy;
    const std::uint64_t number = (std::uint64_t{entropy()} << 32) | entropy();
    name_ = communicator.broadcast(".tupelo-doctor-" + hex_text(number), 0);
  }

  ~SharedFolderProbe() {
    std::error_code ignored;
    fs::remove(file_of(communicator_.rank()), ignored);
  }
  SharedFolderProbe(const SharedFolderProbe&) = delete;
  SharedFolderProbe& operator=(const SharedFolderProbe&) = delete;

  // A sentence about the first rank that something went wrong for; nothing when all is well.
  std::optional<std::string> run() {
    const int rank = communicator_.rank(), world = communicator_.world_size();
    step([&] { write(rank, "first"); });
    step([&] {
      if (rank > 0) expect(0, "first");
    });
    step([&] {
      for (int other = 1; rank == 0 && other < world; ++other) expect(other, "first");
    });
    step([&] {
      if (rank == 0) write(0, "second");
    });
    step([&] { expect(0, "second"); });
    return problem_;
  }

 private:
  fs::path file_of(int rank) const { return folder_ / (name_ + "." + std::to_string(rank)); }
  std::string content(int rank, const std::string& word) const {
    return name_ + " " + std::to_string(rank) + " " + word + "\n";
  }
  void write(int rank, const std::string& word) {
    write_atomically(file_of(rank), content(rank, word));
  }
  void expect(int writer, const std::string& word) {
    if (shows(file_of(writer), content(writer, word))) return;
    throw std::runtime_error("does not see what " + rank_name(writer, hosts_) + " wrote there");
  }

  // On all ranks; nothing more once something went wrong anywhere.
  void step(const std::function<void()>& action) {
    if (problem_) return;
    std::string mine;
    try {
      action();
    } catch (const CommunicationError&) {
      throw;
    } catch (const std::exception& error) {
      mine = error.what();
    }
    const auto texts = gather(communicator_, mine);
    const auto first = std::find_if(texts.begin(), texts.end(),
                                    [](const std::string& text) { return !text.empty(); });
    if (first == texts.end()) return;
    problem_ = rank_name(static_cast<int>(first - texts.begin()), hosts_) + ": " + *first;
  }

  Communicator& communicator_;
  const std::vector<std::string>& hosts_;
  fs::path folder_;
  std::string name_;
  std::optional<std::string> problem_;
};

// Small whole numbers, so that float32 sums are exact in any order.
torch::Tensor pattern(std::int64_t count, torch::Device device) {
  return torch::arange(count, torch::TensorOptions(torch::kFloat32).device(device));
}
torch::Tensor addend(const torch::Tensor& index, int rank) {
  return index.remainder(251) + rank * index.remainder(7);
}
torch::Tensor expected_sum(const torch::Tensor& index, int world) {
  return world * index.remainder(251) + (world * (world - 1) / 2) * index.remainder(7);
}

void wait_for_device(torch::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
}

// The best of some repetitions, at the slowest rank; `right` on this rank.
double time_all_reduce(Communicator& communicator, torch::Device device, std::int64_t count,
                       bool& right) {
  constexpr double kWorthSeconds = 0.3;
  constexpr int kMostRepetitions = 20;
  const auto index = pattern(count, device);
  const auto input = addend(index, communicator.rank());
  const auto expected = expected_sum(index, communicator.world_size());
  double best = 0;
  int repetitions = 2;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    auto tensor = input.clone();
    wait_for_device(device);
    communicator.barrier();
    const auto start = Clock::now();
    communicator.all_reduce(tensor)->wait();
    wait_for_device(device);
    const double taken = communicator.max(seconds_since(start));
    right = right && torch::equal(tensor, expected);
    if (repetition == 0) continue;  // connections are made at the first one
    best = repetition == 1 ? taken : std::min(best, taken);
    if (repetition == 1) {
      repetitions = 1 + static_cast<int>(std::clamp(kWorthSeconds / taken, 1.0,
                                                    static_cast<double>(kMostRepetitions)));
    }
  }
  return best;
}

}  // namespace

Finding check_shared_folder(Communicator& communicator, const std::vector<std::string>& hosts,
                            const fs::path& folder) {
  const auto start = Clock::now();
  const std::string name = fs::absolute(folder).lexically_normal().string();
  std::optional<std::string> problem;
  {
    SharedFolderProbe probe(communicator, hosts, folder);
    problem = probe.run();
    communicator.barrier();  // nobody removes what another one still reads
  }
  if (problem) {
    return {"shared folder", Result::kFailed, name + ": " + *problem,
            "corpus and run must lie where every host has the same folder, and may write"};
  }
  const double seconds = communicator.max(seconds_since(start));
  std::string found = name + ": ";
  found += communicator.world_size() == 1 ? "can be written"
                                          : "what one rank writes or replaces, all others see";
  if (seconds < 1) return {"shared folder", Result::kOk, found, ""};
  return {"shared folder", Result::kWarning,
          found + ", but only after " + number_text(seconds) + " s",
          "a slow or caching file system delays the start of runs: use another one for them"};
}

Clocks compare_clocks(Communicator& communicator) {
  constexpr int kRounds = 10;
  Clocks best;
  for (int round = 0; round < kRounds; ++round) {
    communicator.barrier();
    const auto start = Clock::now();
    communicator.barrier();
    const double wall =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    // Ranks leave a barrier at moments that lie no further apart than it took.
    const double uncertainty = communicator.max(seconds_since(start));
    std::vector<double> walls = all_values(communicator, wall);
    if (round > 0 && uncertainty >= best.uncertainty) continue;
    const double first = walls.front();
    for (double& each : walls) each -= first;
    best = {std::move(walls), uncertainty};
  }
  return best;
}

AllReduceReport check_all_reduce(Communicator& communicator, torch::Device device,
                                 const std::vector<std::string>& hosts) {
  constexpr std::int64_t kSmallest = 4 << 10, kLargest = 64 << 20, kRatio = 8;
  constexpr double kLongest = 0.25;  // seconds, of the last size before a larger one is tried
  AllReduceReport report;
  const int world = communicator.world_size();
  if (world == 1) {
    report.finding = {"all-reduce", Result::kOk, "one rank: nothing to sum", ""};
    return report;
  }
  bool right = true;
  for (std::int64_t bytes = kSmallest; bytes <= kLargest; bytes *= kRatio) {
    const double seconds = time_all_reduce(communicator, device,
                                           bytes / static_cast<std::int64_t>(sizeof(float)), right);
    const double share = 2.0 * (world - 1) / world;
    report.speeds.push_back({bytes, seconds, share * static_cast<double>(bytes) / seconds / 1e9});
    if (seconds > kLongest) break;
  }
  const auto wrong = all_values(communicator, right ? 0 : 1);
  const auto first = std::find(wrong.begin(), wrong.end(), 1.0);
  if (first != wrong.end()) {
    report.finding = {
        "all-reduce", Result::kFailed,
        rank_name(static_cast<int>(first - wrong.begin()), hosts) + " received a wrong sum",
        "do not train here: test its memory, network card and the others' as well"};
    return report;
  }
  report.finding = {"all-reduce", Result::kOk, "every sum is right on every rank", ""};
  return report;
}

}  // namespace tupelo
