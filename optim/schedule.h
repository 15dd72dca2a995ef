// Learning-rate schedules as pure functions of the number of completed updates.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tupelo {

struct ScheduleOptions {
  std::string name = "linear";
  double peak = 1e-4;
  double end = 0.0;               // reached at `total_steps` by both polynomials and wsd
  double power = 1.0;             // polynomial
  std::int64_t warmup_steps = 0;  // linear ramp from 0
  std::int64_t total_steps = 0;
  std::int64_t decay_steps = 0;        // wsd: the last of total_steps, in which the rate falls
  std::string decay_shape = "1-sqrt";  // wsd: one of decay_shapes() (optim/cooldown.h)
};

// f(s) is the rate of update s + 1, s >= 0 completed updates (the convention of the Hugging Face
// transformers schedules, so f(0) = 0 during warm-up); "fairseq-polynomial" is fairseq's.
using LearningRateSchedule = std::function<double(std::int64_t completed_updates)>;

// Names: constant, linear, polynomial, cosine, inverse-sqrt, fairseq-polynomial, wsd.
// Throws std::invalid_argument that lists the valid names or says which value is out of range.
LearningRateSchedule make_schedule(const ScheduleOptions& options);
std::vector<std::string> schedule_names();

// "2000" (steps) or "6%" (of total_steps) -> steps. Throws std::invalid_argument that calls it
// `what`.
std::int64_t parse_steps(const std::string& text, std::int64_t total_steps,
                         const std::string& what = "warm-up");

}  // namespace tupelo
