// How much of a run's training time is used, and whether what is left is enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace tupelo {

// Times are seconds of a clock that only goes forward (now_seconds()). Rank 0 asks its own; what it
// finds is to be told to the others.
class TimeBudget {
 public:
  // `limit_seconds` of training over all starts of a run; 0 = none.
  explicit TimeBudget(double limit_seconds) : limit_(limit_seconds) {}

  // What earlier starts used, and how long their steps took (0 = unknown).
  void take_up(double used_before, double step_seconds_before);
  // Training goes on now.
  void start(double now);
  // A step, with all that belongs to it, has just ended.
  void step_ended(double now);

  bool is_limited() const { return limit_ > 0; }
  double used(double now) const { return used_before_ + (ends_.empty() ? 0 : now - begin_); }
  // Mean over the last kWindow steps; that of earlier starts before the first one has ended.
  double step_seconds() const;

  // Whether one step more would end too late.
  bool is_over(double now) const;
  // Whether after one step more it were too late for `steps` steps. False while no step is timed.
  bool is_time_for(std::int64_t steps, double now) const;

  static constexpr std::size_t kWindow = 100;

 private:
  double limit_;
  double used_before_ = 0;
  double step_seconds_before_ = 0;
  double begin_ = 0;
  std::deque<double> ends_;  // of the last steps, and when the first of them began
};

}  // namespace tupelo
