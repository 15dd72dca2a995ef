// How a learning rate comes down at the end of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "optim/schedule.h"

namespace tupelo {

// What is left of a rate after the share u, 0 to 1, of a decay:
//   "1-sqrt"   1 - sqrt(u)            (Haegele et al., arXiv 2405.18392)
//   "linear"   1 - u
//   "cosine"   (1 + cos(pi u)) / 2
// Throws std::invalid_argument that lists the valid names.
double decay_factor(const std::string& shape, double u);
std::vector<std::string> decay_shapes();

struct Cooldown {
  std::int64_t begin = 0;  // completed updates
  std::int64_t steps = 0;  // from there to `end`
  std::string shape = "1-sqrt";
  double end = 0.0;
};

// `schedule` for fewer than begin completed updates; from there its rate at `begin` falls to `end`,
// which it keeps. Throws std::invalid_argument for an unknown shape or a number out of range.
LearningRateSchedule with_cooldown(LearningRateSchedule schedule, const Cooldown& cooldown);

}  // namespace tupelo
