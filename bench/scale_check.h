// The step model against runs that were measured: predictions from runs of one rank and from what
// `tupelo doctor` says, for the others.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/step_model.h"

namespace tupelo::bench {

// Seconds of a step of one rank that nobody disturbs:
//   update + micro-batches * (pass + by_row * rows)
struct StepWork {
  double update_seconds = 0;
  double pass_seconds = 0;  // forward and backward, whatever the rows
  double seconds_by_row = 0;
};

struct CheckedRun {
  int ranks = 0;
  Shard shard = Shard::kNone;
  double rows = 0;  // of a micro-batch
  int micro_batches = 1;
  bool calibrates = false;  // the prediction was made from it, among others
  double measured_seconds = 0;
  StepTime predicted;

  double error() const { return predicted.seconds() / measured_seconds - 1; }
};

struct Check {
  StepWork work;
  std::map<int, AlphaBeta> sums;  // by number of ranks, as doctor measured them
  std::vector<CheckedRun> runs;
};

// `measured` is what bench/check_scale.py writes:
//   {"cores": 2, "threads": 1, "bucket_bytes": ..., "sequence_length": ...,
//    "model": {"layers", "hidden", "intermediate", "vocab", "position_rows"},
//    "doctor": {"2": REPORT, ...}, by number of ranks,
//    "runs": [{"ranks", "shard", "rows", "micro_batches", "seconds",
//             "calibrates"}, ...]}
// Runs are on one host, on processors. With shards the update shrinks as the bytes do that it
// moves. More threads than cores take turns: compute and update take ranks * threads / cores as
// long. Collectives are work of the same cores, so that only cores that do not compute hide them.
// Throws std::invalid_argument.
Check check_model(const nlohmann::json& measured, const std::string& source);

}  // namespace tupelo::bench
