#include "bench/scale_check.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/doctor_file.h"
#include "bench/encoder_work.h"

namespace tupelo::bench {
namespace {

using Json = nlohmann::json;

// The fit of alpha and beta is that of any straight line.
StepWork fit_work(const std::vector<CheckedRun>& runs) {
  std::vector<Measurement> alone;
  for (const CheckedRun& run : runs) {
    if (run.calibrates) alone.push_back({run.rows, run.measured_seconds});
  }
  if (alone.size() < 2) {
    throw std::invalid_argument(
        "the work of a step is told from two calibrating runs of one rank with different rows, not "
        "from " +
        std::to_string(alone.size()));
  }
  const AlphaBeta line = fit_alpha_beta(alone);
  return {line.alpha_seconds, line.beta_seconds_per_byte};
}

EncoderShape shape_of(const Json& model) {
  EncoderShape shape;
  shape.layers = model.at("layers").get<std::int64_t>();
  shape.hidden = model.at("hidden").get<std::int64_t>();
  shape.intermediate = model.at("intermediate").get<std::int64_t>();
  shape.vocab = model.at("vocab").get<std::int64_t>();
  shape.position_rows = model.at("position_rows").get<std::int64_t>();
  return shape;
}

// A machine that the ranks of a run share.
struct Host {
  int cores = 1;
  int threads = 1;
  double stretch(int ranks) const {
    return std::max(1.0, static_cast<double>(ranks) * threads / cores);
  }
  bool has_idle_cores(int ranks) const { return ranks * threads < cores; }
};

// What doctor found, by number of ranks.
std::map<int, AlphaBeta> sums_of(const Json& doctor, const std::string& source) {
  std::map<int, AlphaBeta> sums;
  for (const auto& [count, report] : doctor.items()) {
    const std::string name = source + ": doctor of " + count + " ranks";
    const DoctorFile found = doctor_report(report, name);
    if (found.group.hosts != 1 || std::to_string(found.group.per_host) != count) {
      throw std::invalid_argument(name + " ran on another number of ranks, or on several hosts");
    }
    sums[found.group.per_host] = found.all_reduce;
  }
  return sums;
}

Fabric fabric_of(const std::map<int, AlphaBeta>& sums, int ranks, const std::string& source) {
  if (ranks == 1) return {};
  const auto found = sums.find(ranks);
  if (found != sums.end()) return calibrated({}, {1, ranks}, found->second);
  throw std::invalid_argument(source + " has no doctor of " + std::to_string(ranks) + " ranks");
}

StepTime predict(const Json& measured, const CheckedRun& run, const StepWork& work,
                 const Fabric& fabric) {
  const Host host{measured.at("cores").get<int>(), measured.at("threads").get<int>()};
  const EncoderShape shape = shape_of(measured.at("model"));
  const MicroBatch batch{run.rows, measured.at("sequence_length").get<double>()};
  StepSettings settings;
  settings.ranks = run.ranks;
  settings.bucket_bytes = measured.at("bucket_bytes").get<double>();
  settings.overlap = host.has_idle_cores(run.ranks);
  settings.update_seconds = host.stretch(run.ranks) * work.fixed_seconds;
  settings.algorithm = Algorithm::kRing;  // what was measured, at the same number of ranks
  const double forward_seconds =
      host.stretch(run.ranks) * work.seconds_by_row * run.rows / (1 + settings.backward_factor);
  const double speed = forward_operations(shape, batch) / forward_seconds;
  return predict_step(layers_of(shape, batch, speed, 0), fabric, settings);
}

CheckedRun run_of(const Json& measured) {
  CheckedRun run;
  run.ranks = measured.at("ranks").get<int>();
  run.rows = measured.at("rows").get<double>();
  run.calibrates = measured.at("calibrates").get<bool>();
  run.measured_seconds = measured.at("seconds").get<double>();
  if (run.ranks < 1 || !(run.rows > 0) || !(run.measured_seconds > 0)) {
    throw std::invalid_argument("a run has ranks, rows and seconds above 0");
  }
  if (run.calibrates && run.ranks != 1) {
    throw std::invalid_argument("only runs of one rank calibrate, not one of " +
                                std::to_string(run.ranks));
  }
  return run;
}

}  // namespace

Check check_model(const Json& measured, const std::string& source) {
  try {
    Check check;
    for (const Json& run : measured.at("runs")) check.runs.push_back(run_of(run));
    check.work = fit_work(check.runs);
    check.sums = sums_of(measured.at("doctor"), source);
    for (CheckedRun& run : check.runs) {
      run.predicted = predict(measured, run, check.work, fabric_of(check.sums, run.ranks, source));
    }
    return check;
  } catch (const Json::exception& error) {
    throw std::invalid_argument(source +
                                " is not what bench/check_scale.py writes: " + error.what());
  }
}

}  // namespace tupelo::bench
