#include "optim/schedule.h"

#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "optim/cooldown.h"
#include "optim/unknown_name.h"

namespace tupelo {
namespace {

double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole > 0 ? whole : 1);
}

// Share of the way from the end of warm-up to total_steps.
double progress(const ScheduleOptions& options, std::int64_t s) {
  return ratio(s - options.warmup_steps, options.total_steps - options.warmup_steps);
}

double polynomial_decay(const ScheduleOptions& options, std::int64_t s) {
  return (options.peak - options.end) * std::pow(1 - progress(options, s), options.power) +
         options.end;
}

// The rules after warm-up, s >= warmup_steps.

double constant(const ScheduleOptions& options, std::int64_t) { return options.peak; }

double linear(const ScheduleOptions& options, std::int64_t s) {
  const std::int64_t left = options.total_steps - s;
  if (left <= 0) return 0.0;
  return options.peak * ratio(left, options.total_steps - options.warmup_steps);
}

double polynomial(const ScheduleOptions& options, std::int64_t s) {
  return s >= options.total_steps ? options.end : polynomial_decay(options, s);
}

// Rises again after total_steps, as the schedule it follows does. Near total_steps 1 + cos cancels,
// and dividing last keeps the digits that a rounded share of the way would lose.
double cosine(const ScheduleOptions& options, std::int64_t s) {
  const auto done = static_cast<double>(s - options.warmup_steps);
  const auto decay = static_cast<double>(options.total_steps - options.warmup_steps);
  const double angle = std::numbers::pi * done / std::fmax(decay, 1.0);
  return options.peak * std::fmax(0.0, 0.5 * (1 + std::cos(angle)));
}

// Without warm-up the curve of a warm-up of 10000 steps, moved to begin at its peak.
double inverse_sqrt(const ScheduleOptions& options, std::int64_t s) {
  const std::int64_t timescale = options.warmup_steps > 0 ? options.warmup_steps : 10000;
  const std::int64_t shifted = s + timescale - options.warmup_steps;
  return options.peak / std::sqrt(ratio(shifted, timescale));
}

// Warm-up, stable, decay (Hu et al., arXiv 2404.06395).
double warmup_stable_decay(const ScheduleOptions& options, std::int64_t s) {
  const std::int64_t done = s - (options.total_steps - options.decay_steps);
  if (s >= options.total_steps) return options.end;
  if (done <= 0) return options.peak;
  const double left = decay_factor(options.decay_shape, ratio(done, options.decay_steps));
  return options.end + (options.peak - options.end) * left;
}

struct Row {
  const char* name;
  double (*after_warmup)(const ScheduleOptions&, std::int64_t);
  bool needs_total;
  // The rate before the first update is that after it: fairseq begins at peak / warmup.
  bool starts_above_zero;
};

constexpr std::array<Row, 7> kSchedules = {{{"constant", constant, false, false},
                                            {"linear", linear, true, false},
                                            {"polynomial", polynomial, true, false},
                                            {"cosine", cosine, true, false},
                                            {"inverse-sqrt", inverse_sqrt, false, false},
                                            {"fairseq-polynomial", polynomial, true, true},
                                            {"wsd", warmup_stable_decay, true, false}}};

const Row& find_row(const std::string& name) {
  for (const Row& row : kSchedules) {
    if (name == row.name) return row;
  }
  throw std::invalid_argument(unknown_name_message("schedule", name, schedule_names()));
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument("learning-rate schedule: " + what);
}

void check(const ScheduleOptions& options, const Row& row) {
  require(std::isfinite(options.peak) && options.peak >= 0,
          "peak must be a number from 0, got " + std::to_string(options.peak));
  require(std::isfinite(options.end) && options.end >= 0,
          "end must be a number from 0, got " + std::to_string(options.end));
  require(std::isfinite(options.power) && options.power > 0,
          "power must be above 0, got " + std::to_string(options.power));
  require(options.warmup_steps >= 0,
          "warm-up must not be negative, got " + std::to_string(options.warmup_steps));
  require(options.decay_steps >= 0,
          "decay must not be negative, got " + std::to_string(options.decay_steps));
  decay_factor(options.decay_shape, 0);  // throws for an unknown one
  if (row.needs_total) {
    require(options.total_steps >= 1, "'" + options.name +
                                          "' needs at least 1 step in total, got " +
                                          std::to_string(options.total_steps));
    require(options.warmup_steps <= options.total_steps,
            "warm-up of " + std::to_string(options.warmup_steps) + " steps exceeds the " +
                std::to_string(options.total_steps) + " steps in total");
  }
  if (row.after_warmup == warmup_stable_decay) {
    require(options.warmup_steps + options.decay_steps <= options.total_steps,
            "warm-up of " + std::to_string(options.warmup_steps) + " steps and decay of " +
                std::to_string(options.decay_steps) + " exceed the " +
                std::to_string(options.total_steps) + " steps in total");
  }
}

double value_of(const std::string& number, const std::string& text, const std::string& what) {
  double value = 0.0;
  const char* end = number.data() + number.size();
  const auto parsed = std::from_chars(number.data(), end, value, std::chars_format::fixed);
  if (number.empty() || parsed.ec != std::errc() || parsed.ptr != end || !(value >= 0)) {
    throw std::invalid_argument(what + " '" + text +
                                "' is neither a number of steps (2000) nor a percentage (6%)");
  }
  return value;
}

}  // namespace

LearningRateSchedule make_schedule(const ScheduleOptions& options) {
  const Row& row = find_row(options.name);
  check(options, row);
  return [options, &row](std::int64_t completed_updates) {
    if (completed_updates >= options.warmup_steps) {
      return row.after_warmup(options, completed_updates);
    }
    const std::int64_t s = row.starts_above_zero && completed_updates == 0 ? 1 : completed_updates;
    return options.peak * ratio(s, options.warmup_steps);
  };
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Row& row : kSchedules) names.emplace_back(row.name);
  return names;
}

std::int64_t parse_steps(const std::string& text, std::int64_t total_steps,
                         const std::string& what) {
  if (!text.empty() && text.back() == '%') {
    const double percent = value_of(text.substr(0, text.size() - 1), text, what);
    if (percent > 100) throw std::invalid_argument(what + " '" + text + "' is above 100%");
    return std::llround(percent / 100 * static_cast<double>(total_steps));
  }
  std::int64_t steps = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), steps);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || steps < 0) {
    value_of("", text, what);
  }
  return steps;
}

}  // namespace tupelo
