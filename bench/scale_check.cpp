#include "bench/scale_check.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/doctor_file.h"
#include "bench/encoder_work.h"

namespace tupelo::bench {
namespace {

using Json = nlohmann::json;

// What a step takes beside its rows, and each row: the straight line through runs of one
// micro-batch. What of it each micro-batch takes: from the run of several.
StepWork fit_work(const std::vector<CheckedRun>& runs) {
  std::vector<Measurement> single;
  const CheckedRun* several = nullptr;
  for (const CheckedRun& run : runs) {
    if (!run.calibrates) continue;
    if (run.micro_batches > 1)
      several = &run;
    else
      single.push_back({run.rows, run.measured_seconds});
  }
  if (single.size() < 2 || several == nullptr) {
    throw std::invalid_argument(
        "the work of a step is told from calibrating runs of one rank: two of one micro-batch, "
        "with "
        "different rows, and one of several micro-batches; there are " +
        std::to_string(single.size()) + " and " + (several == nullptr ? "none" : "one"));
  }
  const AlphaBeta line = fit_alpha_beta(single);
  const double beside_rows = several->measured_seconds -
                             several->micro_batches * several->rows * line.beta_seconds_per_byte;
  StepWork work;
  work.seconds_by_row = line.beta_seconds_per_byte;
  work.pass_seconds = std::clamp((beside_rows - line.alpha_seconds) / (several->micro_batches - 1),
                                 0.0, line.alpha_seconds);
  work.update_seconds = line.alpha_seconds - work.pass_seconds;
  return work;
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

// How many ranks share the update of a run on one host.
int shards_of(const CheckedRun& run) { return run.shard == Shard::kNone ? 1 : run.ranks; }

double update_share(const EncoderShape& shape, const CheckedRun& run) {
  const double parameters = parameter_count(shape);
  return update_bytes(parameters, {}, shards_of(run)) / update_bytes(parameters, {}, 1);
}

StepTime predict(const Json& measured, const CheckedRun& run, const StepWork& work,
                 const Fabric& fabric) {
  const Host host{measured.at("cores").get<int>(), measured.at("threads").get<int>()};
  const EncoderShape shape = shape_of(measured.at("model"));
  const MicroBatch batch{run.rows, measured.at("sequence_length").get<double>()};
  StepSettings settings;
  settings.ranks = run.ranks;
  settings.micro_batches = run.micro_batches;
  settings.shard = run.shard;
  settings.agreements = run.shard == Shard::kNone ? 3 : 4;
  settings.bucket_bytes = measured.at("bucket_bytes").get<double>();
  settings.overlap = settings.overlap_gather = host.has_idle_cores(run.ranks);
  settings.update_seconds =
      host.stretch(run.ranks) * work.update_seconds * update_share(shape, run);
  settings.algorithm = Algorithm::kRing;  // what was measured, at the same number of ranks
  const double forward_seconds = host.stretch(run.ranks) *
                                 (work.pass_seconds + work.seconds_by_row * run.rows) /
                                 (1 + settings.backward_factor);
  const double speed = forward_operations(shape, batch) / forward_seconds;
  return predict_step(layers_of(shape, batch, speed, 0), fabric, settings);
}

Shard shard_of(const std::string& name) {
  for (const auto& [each, shard] : shard_names()) {
    if (each == name) return shard;
  }
  throw std::invalid_argument("a run has shards '" + name + "'; valid are none, node, world");
}

CheckedRun run_of(const Json& measured) {
  CheckedRun run;
  run.ranks = measured.at("ranks").get<int>();
  run.shard = shard_of(measured.at("shard").get<std::string>());
  run.rows = measured.at("rows").get<double>();
  run.micro_batches = measured.at("micro_batches").get<int>();
  run.calibrates = measured.at("calibrates").get<bool>();
  run.measured_seconds = measured.at("seconds").get<double>();
  if (run.ranks < 1 || run.micro_batches < 1 || !(run.rows > 0) || !(run.measured_seconds > 0)) {
    throw std::invalid_argument("a run has ranks, rows, micro-batches and seconds above 0");
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
