// The functions of the CUDA runtime that LibTorch and Tupelo call, for emulated devices. Loaded
// before libcudart (LD_PRELOAD), these are found first; others, and the registration of kernels,
// stay with libcudart, which knows no device and says so. Errors are those of a real device, as far
// as they can tell a wrong use: another device's stream, a wait while a stream is recorded.
#include "tests/emulated_gpu/runtime_api.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tests/emulated_gpu/device_memory.h"
#include "tests/emulated_gpu/report.h"

struct CUgraph_st {
  std::shared_ptr<emulated_gpu::Recording> recording;
};

struct CUgraphExec_st {
  std::shared_ptr<emulated_gpu::Recording> recording;
};

namespace emulated_gpu {
namespace {

thread_local int the_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
std::atomic<int> recordings_everywhere{0};

cudaError_t done(cudaError_t result) {
  if (result != cudaSuccess) last_error = result;
  return result;
}

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

Stream& default_stream(int device) {
  static std::mutex& mutex = *new std::mutex;
  static auto& streams = *new std::map<int, Stream*>;
  const std::lock_guard lock(mutex);
  Stream*& stream = streams[device];
  if (stream == nullptr) stream = new Stream(device);
  return *stream;
}

// Streams are not destroyed: their threads wait for work until the process ends.
std::mutex& streams_mutex() {
  static std::mutex& one = *new std::mutex;
  return one;
}

std::multimap<int, Stream*>& made_streams() {
  static auto& all = *new std::multimap<int, Stream*>;
  return all;
}

cudaError_t make_stream(cudaStream_t* stream) {
  note_context(the_device);
  auto* made = new Stream(the_device);
  const std::lock_guard lock(streams_mutex());
  made_streams().emplace(the_device, made);
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}

cudaError_t make_event(cudaEvent_t* event, unsigned flags) {
  note_context(the_device);
  *event =
      reinterpret_cast<cudaEvent_t>(new Event(the_device, (flags & cudaEventDisableTiming) == 0));
  return cudaSuccess;
}

Event& event_of(cudaEvent_t handle) { return *reinterpret_cast<Event*>(handle); }

// A host's wait: for a stream that is being recorded there is none.
cudaError_t wait_for(Stream& stream, const char* what) {
  note_context(the_device);
  if (stream.recording()) return done(cudaErrorStreamCaptureUnsupported);
  count(what);
  stream.wait_until_idle();
  return cudaSuccess;
}

cudaError_t move_bytes(void* target, const void* source, std::size_t bytes, cudaStream_t handle,
                       bool may_wait) {
  note_context(the_device);
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
  if (may_wait || (pageable && from_device)) return wait_for(stream, "host waits for a copy");
  return cudaSuccess;
}

cudaError_t set_bytes(void* target, int value, std::size_t bytes, cudaStream_t handle) {
  note_context(the_device);
  void* to = reachable(target);
  stream_of(handle).enqueue([=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t refuse_kernel(const void* function) {
  Dl_info info{};
  const bool known = ::dladdr(function, &info) != 0 && info.dli_sname != nullptr;
  count("kernels refused");
  std::fprintf(stderr,
               "emulated GPU: emulated devices run no kernel, and this one was launched: %s\n",
               known ? info.dli_sname : "unknown");
  return done(cudaErrorNotSupported);
}

int unsupported_by_driver() { return 801; }  // CUDA_ERROR_NOT_SUPPORTED

}  // namespace

int current_device() { return the_device; }

Stream& stream_of(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    return default_stream(the_device);
  }
  return *reinterpret_cast<Stream*>(handle);
}

bool is_page_locked(const void* address) { return page_locked().holds(address); }

}  // namespace emulated_gpu

using namespace emulated_gpu;

extern "C" {

// ---- devices

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  return *count > 0 ? cudaSuccess : done(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int* device) {
  *device = the_device;
  return device_count() > 0 ? cudaSuccess : done(cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= device_count()) return done(cudaErrorInvalidDevice);
  the_device = device;
  note_context(device);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= device_count()) return done(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "emulated GPU");
  properties->totalGlobalMem = total_bytes();
  // Of compute capability 9.0, by the CUDA C++ Programming Guide's table of technical limits.
  properties->major = 9;
  properties->minor = 0;
  properties->warpSize = 32;
  properties->multiProcessorCount = 132;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 2147483647;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = 227 << 10;
  properties->sharedMemPerMultiprocessor = 228 << 10;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->unifiedAddressing = 1;
  properties->pciBusID = device + 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device < 0 || device >= device_count()) return done(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = 132;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = 227 << 10;
      break;
    default:
      *value = 0;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (recordings_everywhere > 0) return done(cudaErrorStreamCaptureUnsupported);
  note_context(the_device);
  count("host waits for a device");
  default_stream(the_device).wait_until_idle();
  std::vector<Stream*> streams;
  {
    const std::lock_guard lock(streams_mutex());
    const auto [first, last] = made_streams().equal_range(the_device);
    for (auto each = first; each != last; ++each) streams.push_back(each->second);
  }
  for (Stream* stream : streams) stream->wait_until_idle();
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = reinterpret_cast<void*>(&unsupported_by_driver);
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

// ---- memory

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  note_context(the_device);
  *address = allocate(the_device, bytes);
  return *address != nullptr ? cudaSuccess : done(cudaErrorMemoryAllocation);
}

// Waits for the device, as the real one does.
cudaError_t cudaFree(void* address) {
  if (address == nullptr) {
    note_context(the_device);
    return cudaSuccess;
  }
  if (recordings_everywhere == 0) {
    const int before = the_device;
    the_device = device_of(address).value_or(before);
    cudaDeviceSynchronize();
    the_device = before;
  }
  return release(address) ? cudaSuccess : done(cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
  note_context(the_device);
  *available = free_bytes(the_device);
  *total = total_bytes();
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  note_context(the_device);
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
  note_context(the_device);
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
  return move_bytes(target, source, bytes, nullptr, /*may_wait=*/true);
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return move_bytes(target, source, bytes, stream, /*may_wait=*/false);
}

cudaError_t cudaMemset(void* target, int value, std::size_t bytes) {
  return set_bytes(target, value, bytes, nullptr);
}

cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  return set_bytes(target, value, bytes, stream);
}

// ---- streams

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return make_stream(stream); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return make_stream(stream);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return make_stream(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  note_context(the_device);
  Stream& stream = stream_of(handle);
  if (stream.recording()) return done(cudaErrorStreamCaptureUnsupported);
  return stream.is_idle() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return wait_for(stream_of(stream), "host waits for a stream");
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  note_context(the_device);
  Stream& stream = stream_of(handle);
  const auto recorded_in = event_of(event).recording();
  // An order within one recording needs no waiting; one between a recording and what is outside is
  // an error.
  if (recorded_in != stream.recording()) return done(cudaErrorStreamCaptureIsolation);
  if (recorded_in) return cudaSuccess;
  const auto completion = event_of(event).completion();
  stream.enqueue([completion] { completion->wait(); });
  return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  stream_of(handle).enqueue([=] { callback(handle, cudaSuccess, data); });
  return cudaSuccess;
}

// ---- events

cudaError_t cudaEventCreate(cudaEvent_t* event) { return make_event(event, 0); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return make_event(event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &event_of(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  note_context(the_device);
  Stream& stream = stream_of(handle);
  if (event_of(event).device() != stream.device()) return done(cudaErrorInvalidResourceHandle);
  event_of(event).record(stream);
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  note_context(the_device);
  if (event_of(event).recording()) return done(cudaErrorCapturedEvent);
  return event_of(event).completion()->is_finished() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  note_context(the_device);
  if (event_of(event).recording()) return done(cudaErrorCapturedEvent);
  count("host waits for an event");
  event_of(event).completion()->wait();
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!event_of(start).is_timed() || !event_of(end).is_timed()) {
    return done(cudaErrorInvalidResourceHandle);
  }
  const auto first = event_of(start).completion(), second = event_of(end).completion();
  if (!first->is_finished() || !second->is_finished()) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(second->time() - first->time()).count();
  return cudaSuccess;
}

// ---- graphs

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  *status =
      stream_of(handle).recording() ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, std::size_t* count) {
  const auto recording = stream_of(handle).recording();
  *status = recording ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (id != nullptr) *id = recording ? recording->id : 0;
  if (graph != nullptr) *graph = nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  std::swap(*mode, current);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  if (handle == nullptr) return done(cudaErrorStreamCaptureUnsupported);
  Stream& stream = stream_of(handle);
  if (stream.recording()) return done(cudaErrorIllegalState);
  stream.begin_recording();
  ++recordings_everywhere;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  auto recording = stream_of(handle).end_recording();
  if (!recording) return done(cudaErrorIllegalState);
  --recordings_everywhere;
  *graph = new CUgraph_st{std::move(recording)};
  count("graphs recorded");
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new CUgraphExec_st{graph->recording};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  note_context(the_device);
  count("graphs launched");
  const auto recording = exec->recording;
  stream_of(stream).enqueue([recording] {
    for (const Work& work : recording->works) work();
  });
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, std::size_t* count) {
  *count = graph->recording->works.size();
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t*, void*, cudaHostFn_t, unsigned, unsigned) {
  return done(cudaErrorNotSupported);
}

// ---- kernels

cudaError_t cudaLaunchKernel(const void* function, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return refuse_kernel(function);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void* function, void**) {
  return refuse_kernel(function);
}

// These two are what nvcc makes of a launch since CUDA 13.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return refuse_kernel(kernel);
}

}  // extern "C"
