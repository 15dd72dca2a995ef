// Work on many pieces at once, results in order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tupelo {

// Threads that run tasks. Destruction drops the tasks that have not begun and waits for the others.
class WorkerThreads {
 public:
  explicit WorkerThreads(int threads);

  template <typename Task>
  auto submit(Task task) -> std::future<decltype(task())> {
    auto packaged = std::make_shared<std::packaged_task<decltype(task())()>>(std::move(task));
    auto result = packaged->get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.emplace_back([packaged] { (*packaged)(); });
    }
    changed_.notify_one();
    return result;
  }

 private:
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::jthread> threads_;  // last, so that they end before what they use
};

// Until produce(input) returns false: output = transform(input) on `threads` threads, then
// consume(output) in the order of production. produce and consume run on the calling thread; at
// most 2 * threads + 1 pieces exist at a time. The first exception, in that order, is rethrown.
template <typename Input, typename Produce, typename Transform, typename Consume>
void ordered_pipeline(int threads, Produce produce, Transform transform, Consume consume) {
  using Output = decltype(transform(std::declval<Input&&>()));
  std::deque<std::future<Output>> under_way;
  WorkerThreads workers(threads);
  const std::size_t most = 2 * static_cast<std::size_t>(threads);
  const auto finish_one = [&] {
    Output output = under_way.front().get();
    under_way.pop_front();
    consume(std::move(output));
  };
  for (;;) {
    auto input = std::make_shared<Input>();
    bool more = false;
    try {
      more = produce(*input);
    } catch (...) {
      while (!under_way.empty()) finish_one();  // what came before may have failed first
      throw;
    }
    if (!more) break;
    if (under_way.size() == most) finish_one();
    under_way.push_back(
        workers.submit([input, &transform] { return transform(std::move(*input)); }));
  }
  while (!under_way.empty()) finish_one();
}

}  // namespace tupelo
