// What the settings of [optim] mean for learning rates, and what they demand of each other.
#pragma once

#include <cstdint>

#include "launcher/run_config.h"
#include "optim/schedule.h"

namespace tupelo {

// The end of a run, in which the learning rate falls: after `begin` updates, within `steps`; not at
// all when steps is 0.
struct CooldownSpan {
  std::int64_t begin = 0;
  std::int64_t steps = 0;
  std::int64_t end() const { return begin + steps; }
  bool operator==(const CooldownSpan&) const = default;
};

// That of optim.cooldown at the end of train.steps. Throws std::invalid_argument.
CooldownSpan cooldown_span(const RunConfig& config);
// The same for a run that begins to cool down after `updates`: so many steps, or a share of all
// that the run then has.
CooldownSpan cooldown_span_from(const RunConfig& config, std::int64_t updates);

// The schedule over train.steps steps with this cool-down, every rate scaled as optim.lr-scaling
// says. Throws std::invalid_argument.
LearningRateSchedule learning_rate_schedule(const RunConfig& config, const CooldownSpan& cooldown);

// Throws std::invalid_argument that names the keys when settings of [optim] contradict each other
// or have no effect.
void validate_updates(const RunConfig& config);

}  // namespace tupelo
