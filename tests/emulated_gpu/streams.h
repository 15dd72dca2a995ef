// Streams, events and graphs of emulated devices: each stream is a thread that does its work in
// order, while the host goes on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace emulated_gpu {

using Work = std::function<void()>;

// Something that happens once, and can be waited for.
class Completion {
 public:
  void finish();
  void wait();  // or until streams are stopped
  bool is_finished() const;
  std::chrono::steady_clock::time_point time() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool finished_ = false;
  std::chrono::steady_clock::time_point time_;
};

// What a stream was given while it was being recorded.
struct Recording {
  std::uint64_t id = 0;
  std::vector<Work> works;
};

class Stream {
 public:
  explicit Stream(int device) : device_(device) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int device() const { return device_; }
  // Done in its turn, by the stream's thread, or kept for later while the stream is recorded.
  // Work starts up to EMULATED_GPU_DELAY microseconds late, at random.
  void enqueue(Work work);
  // Not while it is recorded.
  void wait_until_idle();
  bool is_idle() const;

  void begin_recording();
  std::shared_ptr<Recording> end_recording();
  // Null when the stream is not being recorded.
  std::shared_ptr<Recording> recording() const;

 private:
  void run();

  const int device_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  bool has_thread_ = false;
  bool is_busy_ = false;
  std::shared_ptr<Recording> recording_;
};

// Lets streams end what they do and begin nothing more. Gives up after a second: a collective may
// never end.
void stop_streams();

class Event {
 public:
  Event(int device, bool is_timed) : device_(device), is_timed_(is_timed) {}

  int device() const { return device_; }
  bool is_timed() const { return is_timed_; }
  void record(Stream& stream);
  // Of the last record(); finished when there was none.
  std::shared_ptr<Completion> completion() const;
  // Null unless the last record() was into a stream that was being recorded.
  std::shared_ptr<Recording> recording() const;

 private:
  const int device_;
  const bool is_timed_;
  mutable std::mutex mutex_;
  std::shared_ptr<Completion> completion_;
  std::shared_ptr<Recording> recording_;
};

}  // namespace emulated_gpu
