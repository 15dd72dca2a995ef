#include "tests/emulated_gpu/report.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

namespace emulated_gpu {
namespace {

struct Report {
  std::mutex mutex;
  std::map<std::string, std::int64_t> counts;
  std::set<int> contexts;
};

void write();

Report& report() {
  static Report& one = *[] {
    std::atexit(write);
    return new Report;
  }();
  return one;
}

// As the launcher told it; of a process alone it is 0.
std::string rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "RANK"}) {
    if (const char* text = std::getenv(variable)) return text;
  }
  return "0";
}

void write() {
  const char* path = std::getenv("EMULATED_GPU_REPORT");
  if (path == nullptr) return;
  std::ofstream file(std::string(path) + "." + rank());
  const std::lock_guard lock(report().mutex);
  for (const int device : report().contexts) file << "context on device " << device << "\t1\n";
  for (const auto& [what, times] : report().counts) file << what << '\t' << times << '\n';
}

}  // namespace

void count(const std::string& what) {
  const std::lock_guard lock(report().mutex);
  ++report().counts[what];
}

void note_context(int device) {
  const std::lock_guard lock(report().mutex);
  report().contexts.insert(device);
}

bool has_context(int device) {
  const std::lock_guard lock(report().mutex);
  return report().contexts.contains(device);
}

}  // namespace emulated_gpu
