#include "tests/emulated_gpu/device_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace emulated_gpu {
namespace {

constexpr std::size_t kPage = std::size_t{1} << 16;

std::size_t number_from(const char* variable, std::size_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) : bytes_(bytes), gaps_{{0, bytes}} {
    file_ = ::memfd_create("emulated-gpu", MFD_CLOEXEC);
    if (file_ < 0 || ::ftruncate(file_, static_cast<off_t>(bytes)) != 0) std::abort();
    named_ = map(PROT_NONE);
    reached_ = map(PROT_READ | PROT_WRITE);
  }

  void* allocate(std::size_t bytes) {
    const std::size_t wanted = std::max<std::size_t>(1, (bytes + kPage - 1) / kPage) * kPage;
    const std::lock_guard lock(mutex_);
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
      const auto [offset, size] = *gap;
      if (size < wanted) continue;
      gaps_.erase(gap);
      if (size > wanted) gaps_[offset + wanted] = size - wanted;
      blocks_[offset] = wanted;
      std::memset(reached_ + offset, 0xff, bytes);
      return named_ + offset;
    }
    return nullptr;
  }

  bool release(const char* address) {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(static_cast<std::size_t>(address - named_));
    if (block == blocks_.end()) return false;
    auto [offset, size] = *block;
    blocks_.erase(block);
    ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(size));
    auto next = gaps_.lower_bound(offset);
    if (next != gaps_.end() && next->first == offset + size) {
      size += next->second;
      next = gaps_.erase(next);
    }
    if (next != gaps_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        previous->second += size;
        return true;
      }
    }
    gaps_[offset] = size;
    return true;
  }

  std::size_t free_bytes() const {
    const std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const auto& [offset, size] : gaps_) sum += size;
    return sum;
  }

  bool holds(const char* address) const { return address >= named_ && address < named_ + bytes_; }
  char* reachable(const char* address) const { return reached_ + (address - named_); }

 private:
  char* map(int protection) const {
    void* address = ::mmap(nullptr, bytes_, protection, MAP_SHARED | MAP_NORESERVE, file_, 0);
    if (address == MAP_FAILED) std::abort();
    return static_cast<char*>(address);
  }

  const std::size_t bytes_;
  int file_;
  char* named_;
  char* reached_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> gaps_;    // sizes by offset
  std::map<std::size_t, std::size_t> blocks_;  // sizes by offset
};

// Never destroyed: threads of streams use it until the process ends.
const std::vector<std::unique_ptr<DeviceMemory>>& devices() {
  static const auto& all = *[] {
    auto* made = new std::vector<std::unique_ptr<DeviceMemory>>;
    for (int i = 0; i < device_count(); ++i) {
      made->push_back(std::make_unique<DeviceMemory>(total_bytes()));
    }
    return made;
  }();
  return all;
}

}  // namespace

int device_count() {
  static const int count = [] {
    const auto there = number_from("EMULATED_GPUS", 0);
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (visible == nullptr) return static_cast<int>(there);
    // Up to the first name that is no device.
    int named = 0;
    std::istringstream names(visible);
    for (std::string name; std::getline(names, name, ',');) {
      char* end = nullptr;
      const long device = std::strtol(name.c_str(), &end, 10);
      if (end == name.c_str() || device < 0 || static_cast<std::size_t>(device) >= there) break;
      ++named;
    }
    return named;
  }();
  return count;
}

std::size_t total_bytes() {
  static const std::size_t bytes = number_from("EMULATED_GPU_MEMORY", 4096) << 20;
  return bytes;
}

std::size_t free_bytes(int device) { return devices().at(device)->free_bytes(); }

void* allocate(int device, std::size_t bytes) { return devices().at(device)->allocate(bytes); }

bool release(void* address) {
  const auto device = device_of(address);
  return device && devices()[*device]->release(static_cast<const char*>(address));
}

std::optional<int> device_of(const void* address) {
  const auto& all = devices();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i]->holds(static_cast<const char*>(address))) return static_cast<int>(i);
  }
  return std::nullopt;
}

void* reachable(const void* address) {
  const auto device = device_of(address);
  if (!device) return const_cast<void*>(address);
  return devices()[*device]->reachable(static_cast<const char*>(address));
}

}  // namespace emulated_gpu
