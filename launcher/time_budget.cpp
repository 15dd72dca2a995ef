#include "launcher/time_budget.h"

namespace tupelo {

void TimeBudget::take_up(double used_before, double step_seconds_before) {
  used_before_ = used_before;
  step_seconds_before_ = step_seconds_before;
}

void TimeBudget::start(double now) {
  begin_ = now;
  ends_ = {now};
}

void TimeBudget::step_ended(double now) {
  ends_.push_back(now);
  if (ends_.size() > kWindow + 1) ends_.pop_front();
}

double TimeBudget::step_seconds() const {
  if (ends_.size() < 2) return step_seconds_before_;
  return (ends_.back() - ends_.front()) / static_cast<double>(ends_.size() - 1);
}

bool TimeBudget::is_over(double now) const {
  return is_limited() && used(now) + step_seconds() > limit_;
}

bool TimeBudget::is_time_for(std::int64_t steps, double now) const {
  const double step = step_seconds();
  return is_limited() && step > 0 && used(now) + static_cast<double>(steps + 1) * step > limit_;
}

}  // namespace tupelo
