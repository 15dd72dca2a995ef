#include "launcher/update_settings.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "optim/cooldown.h"
#include "optim/optimizer.h"

namespace tupelo {
namespace {

void require(bool holds, const std::string& sentence) {
  if (!holds) throw std::invalid_argument(sentence);
}

std::string text_of(const RunConfig& config, const std::string& name) {
  const auto& entries = config_entries();
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const ConfigEntry& entry) { return entry.name == name; });
  return found->get(config);
}

// Refuses a value other than the default where nothing looks at it.
void require_effect(const RunConfig& config, const std::string& name, const std::string& reason) {
  const std::string value = text_of(config, name);
  require(value == text_of(RunConfig(), name),
          name + " is " + value + ", which has no effect while " + reason);
}

void validate_optimizer(const RunConfig& config) {
  const std::string& optimizer = config.optim.optimizer.name;
  const std::string reason = "optim.optimizer is " + optimizer;
  for (const char* option : {"beta1", "beta2", "epsilon", "momentum"}) {
    if (optimizer_uses(optimizer, option)) continue;
    require_effect(config, std::string("optim.") + option, reason);
  }
  if (!optimizes_matrices(optimizer)) {
    require_effect(config, "optim.adamw-learning-rate", reason);
    return;
  }
  require(config.optim.schedule.peak > 0 || config.optim.adamw_learning_rate == "auto",
          "optim.adamw-learning-rate is " + config.optim.adamw_learning_rate +
              ", and in its course follows optim.learning-rate, which is 0; valid beside it: auto");
}

void validate_scaling(const RunConfig& config) {
  if (config.optim.lr_scaling == "none") {
    require_effect(config, "optim.lr-reference-batch", "optim.lr-scaling is none");
    return;
  }
  require(config.optim.lr_reference_batch > 0,
          "optim.lr-scaling " + config.optim.lr_scaling +
              " needs optim.lr-reference-batch, the global batch that optim.learning-rate is for");
}

void validate_decays(const RunConfig& config) {
  const std::string& schedule = config.optim.schedule.name;
  if (schedule == "wsd") {
    require_effect(config, "optim.cooldown",
                   "optim.schedule is wsd, whose own decay is optim.decay-steps");
    return;
  }
  const std::string reason = "optim.schedule is " + schedule;
  require_effect(config, "optim.decay-steps", reason);
  const CooldownSpan cooldown = cooldown_span(config);
  if (cooldown.steps == 0) {
    require_effect(config, "optim.decay-shape", reason + " and optim.cooldown is 0");
    return;
  }
  const std::int64_t warmup = parse_steps(config.optim.warmup, config.train.steps);
  require(cooldown.begin >= warmup, "optim.warmup " + config.optim.warmup + " and optim.cooldown " +
                                        config.optim.cooldown + " do not fit into the " +
                                        std::to_string(config.train.steps) +
                                        " steps of train.steps");
}

// What optim.lr-scaling multiplies every rate with.
double learning_rate_scale(const RunConfig& config) {
  if (config.optim.lr_scaling == "none") return 1.0;
  const double ratio = static_cast<double>(config.data.global_batch) /
                       static_cast<double>(config.optim.lr_reference_batch);
  return config.optim.lr_scaling == "sqrt" ? std::sqrt(ratio) : ratio;
}

}  // namespace

CooldownSpan cooldown_span(const RunConfig& config) {
  const std::int64_t steps =
      parse_steps(config.optim.cooldown, config.train.steps, "optim.cooldown");
  return {config.train.steps - steps, steps};
}

CooldownSpan cooldown_span_from(const RunConfig& config, std::int64_t updates) {
  const std::string& text = config.optim.cooldown;
  if (!text.ends_with('%')) return {updates, parse_steps(text, 0, "optim.cooldown")};
  constexpr std::int64_t kWhole = std::int64_t{1} << 40;
  const double share = static_cast<double>(parse_steps(text, kWhole, "optim.cooldown")) /
                       static_cast<double>(kWhole);
  if (share == 0) return {updates, 0};
  const double steps = static_cast<double>(updates) * share / std::max(1 - share, 1e-9);
  return {updates, std::max<std::int64_t>(1, std::llround(steps))};
}

LearningRateSchedule learning_rate_schedule(const RunConfig& config, const CooldownSpan& cooldown) {
  ScheduleOptions options = config.optim.schedule;
  options.total_steps = config.train.steps;
  options.warmup_steps = parse_steps(config.optim.warmup, config.train.steps);
  options.decay_shape = config.optim.decay_shape;
  if (options.name == "wsd") {
    options.decay_steps = parse_steps(config.optim.decay_steps, config.train.steps, "decay");
  }
  LearningRateSchedule schedule = make_schedule(options);
  if (cooldown.steps > 0) {
    schedule = with_cooldown(std::move(schedule),
                             {cooldown.begin, cooldown.steps, options.decay_shape, options.end});
  }
  const double scale = learning_rate_scale(config);
  if (scale == 1.0) return schedule;
  return [schedule, scale](std::int64_t completed) { return scale * schedule(completed); };
}

LearningRateSchedule learning_rate_schedule(const RunConfig& config) {
  return learning_rate_schedule(config, cooldown_span(config));
}

void validate_updates(const RunConfig& config) {
  validate_optimizer(config);
  validate_scaling(config);
  validate_decays(config);
}

}  // namespace tupelo
