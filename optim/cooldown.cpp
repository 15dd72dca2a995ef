#include "optim/cooldown.h"

#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <utility>

#include "optim/unknown_name.h"

namespace tupelo {
namespace {

struct Row {
  const char* name;
  double (*left)(double u);
};

constexpr std::array<Row, 3> kShapes = {
    {{"1-sqrt", [](double u) { return 1 - std::sqrt(u); }},
     {"linear", [](double u) { return 1 - u; }},
     {"cosine", [](double u) { return 0.5 * (1 + std::cos(std::numbers::pi * u)); }}}};

const Row& find_shape(const std::string& name) {
  for (const Row& row : kShapes) {
    if (name == row.name) return row;
  }
  throw std::invalid_argument(unknown_name_message("decay shape", name, decay_shapes()));
}

}  // namespace

double decay_factor(const std::string& shape, double u) { return find_shape(shape).left(u); }

std::vector<std::string> decay_shapes() {
  std::vector<std::string> names;
  for (const Row& row : kShapes) names.emplace_back(row.name);
  return names;
}

LearningRateSchedule with_cooldown(LearningRateSchedule schedule, const Cooldown& cooldown) {
  if (cooldown.begin < 0 || cooldown.steps < 1 || !(cooldown.end >= 0)) {
    throw std::invalid_argument(
        "cool-down: " + std::to_string(cooldown.steps) + " steps from step " +
        std::to_string(cooldown.begin) + " to " + std::to_string(cooldown.end) +
        "; valid: at least 1 step, from a step and to a rate of at least 0");
  }
  double (*const left)(double) = find_shape(cooldown.shape).left;
  const double start = schedule(cooldown.begin);
  return [schedule = std::move(schedule), cooldown, left, start](std::int64_t completed) {
    if (completed < cooldown.begin) return schedule(completed);
    const std::int64_t done = completed - cooldown.begin;
    if (done >= cooldown.steps) return cooldown.end;
    const double u = static_cast<double>(done) / static_cast<double>(cooldown.steps);
    return cooldown.end + (start - cooldown.end) * left(u);
  };
}

}  // namespace tupelo
