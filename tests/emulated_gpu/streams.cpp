#include "tests/emulated_gpu/streams.h"

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>

namespace emulated_gpu {
namespace {

std::atomic<bool> stopping{false};
std::atomic<int> streams_at_work{0};

void be_late() {
  static const unsigned long longest = [] {
    const char* text = std::getenv("EMULATED_GPU_DELAY");
    return text == nullptr ? 0UL : std::strtoul(text, nullptr, 10);
  }();
  if (longest == 0) return;
  thread_local std::minstd_rand random(std::random_device{}());
  // Most work is prompt: what runs ahead of it is then far ahead of the rest.
  if (random() % 16 == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % longest));
  }
}

}  // namespace

void Completion::finish() {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  time_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

void Completion::wait() {
  constexpr std::chrono::milliseconds kInterval(10);
  std::unique_lock lock(mutex_);
  while (!finished_ && !stopping) changed_.wait_for(lock, kInterval);
}

bool Completion::is_finished() const {
  const std::lock_guard lock(mutex_);
  return finished_;
}

std::chrono::steady_clock::time_point Completion::time() const {
  const std::lock_guard lock(mutex_);
  return time_;
}

void Stream::enqueue(Work work) {
  const std::lock_guard lock(mutex_);
  if (recording_) {
    recording_->works.push_back(std::move(work));
    return;
  }
  queue_.push_back(std::move(work));
  if (!has_thread_) {
    has_thread_ = true;
    std::thread([this] { run(); }).detach();
  }
  changed_.notify_all();
}

void Stream::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && !is_busy_; });
}

bool Stream::is_idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !is_busy_;
}

void Stream::begin_recording() {
  static std::atomic<std::uint64_t> ids{1};
  const std::lock_guard lock(mutex_);
  recording_ = std::make_shared<Recording>();
  recording_->id = ids++;
}

std::shared_ptr<Recording> Stream::end_recording() {
  const std::lock_guard lock(mutex_);
  return std::exchange(recording_, nullptr);
}

std::shared_ptr<Recording> Stream::recording() const {
  const std::lock_guard lock(mutex_);
  return recording_;
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !queue_.empty(); });
    Work work = std::move(queue_.front());
    queue_.pop_front();
    is_busy_ = true;
    lock.unlock();
    be_late();
    ++streams_at_work;
    if (!stopping) work();
    work = nullptr;  // what it holds is gone when the stream is idle
    --streams_at_work;
    lock.lock();
    is_busy_ = false;
    if (queue_.empty()) changed_.notify_all();
  }
}

void stop_streams() {
  stopping = true;
  constexpr int kPatience = 1000;  // milliseconds
  for (int i = 0; i < kPatience && streams_at_work > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Event::record(Stream& stream) {
  auto completion = std::make_shared<Completion>();
  {
    const std::lock_guard lock(mutex_);
    completion_ = completion;
    recording_ = stream.recording();
  }
  stream.enqueue([completion] { completion->finish(); });
}

std::shared_ptr<Completion> Event::completion() const {
  const std::lock_guard lock(mutex_);
  if (completion_) return completion_;
  auto none = std::make_shared<Completion>();
  none->finish();
  return none;
}

std::shared_ptr<Recording> Event::recording() const {
  const std::lock_guard lock(mutex_);
  return recording_;
}

}  // namespace emulated_gpu
