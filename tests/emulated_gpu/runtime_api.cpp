#include "tests/emulated_gpu/runtime_api.h"

#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/emulated_gpu/report.h"

namespace emulated_gpu {
namespace {

thread_local int the_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;

class Recordings {
 public:
  void begin(cudaStreamCaptureMode mode) {
    const std::lock_guard lock(mutex_);
    modes_[std::this_thread::get_id()].push_back(mode);
  }
  void end() {
    const std::lock_guard lock(mutex_);
    auto& own = modes_[std::this_thread::get_id()];
    if (!own.empty()) own.pop_back();
  }
  bool has_any(const std::function<bool(bool is_own, cudaStreamCaptureMode mode)>& wanted) {
    const std::lock_guard lock(mutex_);
    for (const auto& [thread, modes] : modes_) {
      for (const auto mode : modes) {
        if (wanted(thread == std::this_thread::get_id(), mode)) return true;
      }
    }
    return false;
  }

 private:
  std::mutex mutex_;
  std::map<std::thread::id, std::vector<cudaStreamCaptureMode>> modes_;
};

Recordings& recordings() {
  static Recordings& all = *new Recordings;
  return all;
}

// Streams are not destroyed: their threads wait for work until the process ends.
class Streams {
 public:
  Stream& make(int device) {
    auto* made = new Stream(device);
    const std::lock_guard lock(mutex_);
    of_device_[device].push_back(made);
    return *made;
  }
  Stream& by_default(int device) {
    const std::lock_guard lock(mutex_);
    Stream*& stream = defaults_[device];
    if (stream == nullptr) {
      stream = new Stream(device);
      of_device_[device].push_back(stream);
    }
    return *stream;
  }
  std::vector<Stream*> on(int device) {
    const std::lock_guard lock(mutex_);
    return of_device_[device];
  }

 private:
  std::mutex mutex_;
  std::map<int, Stream*> defaults_;
  std::map<int, std::vector<Stream*>> of_device_;
};

Streams& streams() {
  static Streams& all = *new Streams;
  return all;
}

}  // namespace

int current_device() { return the_device; }
void set_current_device(int device) { the_device = device; }

cudaError_t done(cudaError_t result) {
  if (result != cudaSuccess) last_error = result;
  return result;
}

Stream& stream_of(cudaStream_t handle) {
  const bool by_default =
      handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
  return by_default ? streams().by_default(the_device) : *reinterpret_cast<Stream*>(handle);
}

Stream& make_stream(int device) { return streams().make(device); }
std::vector<Stream*> streams_on(int device) { return streams().on(device); }

cudaError_t wait_for(Stream& stream, const char* what) {
  note_context(the_device);
  if (stream.recording()) return done(cudaErrorStreamCaptureUnsupported);
  count(what);
  stream.wait_until_idle();
  return cudaSuccess;
}

void recording_began(cudaStreamCaptureMode mode) { recordings().begin(mode); }
void recording_ended() { recordings().end(); }
bool is_anything_recorded() {
  return recordings().has_any([](bool, cudaStreamCaptureMode) { return true; });
}

cudaStreamCaptureMode exchange_capture_mode(cudaStreamCaptureMode mode) {
  return std::exchange(capture_mode, mode);
}

bool may_disturb_recording() {
  if (capture_mode == cudaStreamCaptureModeRelaxed) return false;
  return recordings().has_any([](bool is_own, cudaStreamCaptureMode mode) {
    if (is_own) return mode != cudaStreamCaptureModeRelaxed;
    return capture_mode == cudaStreamCaptureModeGlobal && mode == cudaStreamCaptureModeGlobal;
  });
}

}  // namespace emulated_gpu

using namespace emulated_gpu;

extern "C" cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
extern "C" cudaError_t cudaPeekAtLastError() { return last_error; }
