// Memory of devices and of the host, and copies between them.
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tests/emulated_gpu/device_memory.h"
#include "tests/emulated_gpu/report.h"
#include "tests/emulated_gpu/runtime_api.h"

namespace emulated_gpu {
namespace {

class PageLocked {
 public:
  void add(const void* address, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    ranges_[static_cast<const char*>(address)] = bytes;
  }
  std::size_t remove(const void* address) {
    const std::lock_guard lock(mutex_);
    const auto range = ranges_.find(static_cast<const char*>(address));
    if (range == ranges_.end()) return 0;
    const std::size_t bytes = range->second;
    ranges_.erase(range);
    return bytes;
  }
  bool holds(const void* address) const {
    const std::lock_guard lock(mutex_);
    auto range = ranges_.upper_bound(static_cast<const char*>(address));
    if (range == ranges_.begin()) return false;
    --range;
    return static_cast<const char*>(address) < range->first + range->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<const char*, std::size_t> ranges_;
};

PageLocked& page_locked() {
  static PageLocked& one = *new PageLocked;
  return one;
}

}  // namespace

bool is_page_locked(const void* address) { return page_locked().holds(address); }

}  // namespace emulated_gpu

using namespace emulated_gpu;

namespace {

cudaError_t move_bytes(void* target, const void* source, std::size_t bytes, cudaStream_t handle,
                       bool waits) {
  note_context(current_device());
  Stream& stream = stream_of(handle);
  const bool from_device = device_of(source).has_value(), to_device = device_of(target).has_value();
  void* to = reachable(target);
  const void* from = reachable(source);
  const bool pageable =
      (!from_device && !is_page_locked(source)) || (!to_device && !is_page_locked(target));
  if (pageable && stream.recording()) return done(cudaErrorStreamCaptureUnsupported);
  if (pageable && !from_device) {
    // Bytes of ordinary memory are read before the call returns.
    auto bytes_now = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
    stream.enqueue([=] { std::memcpy(to, bytes_now->data(), bytes); });
  } else {
    stream.enqueue([=] { std::memmove(to, from, bytes); });
  }
  if (waits || (pageable && from_device)) return wait_for(stream, "host waits for a copy");
  return cudaSuccess;
}

cudaError_t set_bytes(void* target, int value, std::size_t bytes, cudaStream_t handle) {
  note_context(current_device());
  void* to = reachable(target);
  stream_of(handle).enqueue([=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  note_context(current_device());
  if (may_disturb_recording()) return done(cudaErrorStreamCaptureUnsupported);
  *address = allocate(current_device(), bytes);
  return *address != nullptr ? cudaSuccess : done(cudaErrorMemoryAllocation);
}

// Waits for the device, as the real one does.
cudaError_t cudaFree(void* address) {
  if (address == nullptr) {
    note_context(current_device());
    return cudaSuccess;
  }
  if (may_disturb_recording()) return done(cudaErrorStreamCaptureUnsupported);
  for (Stream* stream : streams_on(device_of(address).value_or(current_device()))) {
    stream->wait_until_idle();
  }
  return release(address) ? cudaSuccess : done(cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
  note_context(current_device());
  *available = free_bytes(current_device());
  *total = total_bytes();
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  note_context(current_device());
  if (may_disturb_recording()) return done(cudaErrorStreamCaptureUnsupported);
  *address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (*address == MAP_FAILED) return done(cudaErrorMemoryAllocation);
  page_locked().add(*address, bytes);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
  return cudaHostAlloc(address, bytes, 0);
}

cudaError_t cudaFreeHost(void* address) {
  const std::size_t bytes = page_locked().remove(address);
  if (bytes == 0) return done(cudaErrorInvalidValue);
  ::munmap(address, bytes);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned) {
  note_context(current_device());
  page_locked().add(address, bytes);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* address) {
  return page_locked().remove(address) > 0 ? cudaSuccess : done(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  *attributes = {};
  attributes->type = cudaMemoryTypeUnregistered;
  if (const auto device = device_of(address)) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->device = *device;
    attributes->devicePointer = const_cast<void*>(address);
  } else if (is_page_locked(address)) {
    attributes->type = cudaMemoryTypeHost;
    attributes->hostPointer = const_cast<void*>(address);
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind) {
  return move_bytes(target, source, bytes, nullptr, /*waits=*/true);
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return move_bytes(target, source, bytes, stream, /*waits=*/false);
}

cudaError_t cudaMemset(void* target, int value, std::size_t bytes) {
  return set_bytes(target, value, bytes, nullptr);
}

cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  return set_bytes(target, value, bytes, stream);
}

}  // extern "C"
