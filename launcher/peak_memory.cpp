#include "launcher/peak_memory.h"

#include <fstream>
#include <string>

#ifdef TUPELO_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace tupelo {
namespace {

std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

}  // namespace

std::int64_t peak_memory_bytes(c10::Device device) {
#ifdef TUPELO_CUDA
  if (device.is_cuda()) {
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return c10::cuda::CUDACachingAllocator::getDeviceStats(device.index())
        .reserved_bytes[kAll]
        .peak;
  }
#endif
  static_cast<void>(device);
  return peak_resident_bytes();
}

}  // namespace tupelo
