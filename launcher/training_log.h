// What a run tells while it goes on: lines of metrics.jsonl, and of the console.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "launcher/evaluation.h"
#include "launcher/held_out_probe.h"
#include "launcher/ledger.h"
#include "launcher/metrics_log.h"
#include "launcher/sentence_order_figures.h"

namespace tupelo {

class Console;

struct StepRecord {
  double loss = 0;  // mean over the masked tokens of the whole global batch
  double masked_accuracy = 0;
  std::optional<SentenceOrderFigures> sentence_order;
  double learning_rate = 0;
  double grad_norm = 0;                      // before clipping
  std::optional<double> position_grad_norm;  // the same of position parameters, when logged
  std::int64_t masked_tokens = 0;
  std::int64_t tokens = 0;  // of this step, all ranks
  // Since the record before: mean over ranks of how long training waited for a batch, and how many
  // steps did, summed over ranks (BatchStream::waits).
  double loader_wait_ms = 0;
  std::int64_t loader_late_steps = 0;
  std::int64_t peak_memory_bytes = 0;  // so far, of the rank that used most; when logged
  bool skipped = false;                // loss or gradient was not finite: no update
};

// How far a run has come.
struct RunProgress {
  std::int64_t step = 0;
  std::int64_t tokens = 0;  // of the whole run, all ranks
};

// Of one rank: only the one that called open() writes metrics, and only a console that is not
// silent shows anything.
class TrainingLog {
 public:
  // `console` outlives the log.
  TrainingLog(Console& console, std::int64_t total_steps)
      : console_(console), total_steps_(total_steps) {}

  // Appends to `metrics` behind the records up to `step`. Throws std::system_error.
  void open(const std::filesystem::path& metrics, std::int64_t step);
  // The run ends at another step than it was to.
  void end_at(std::int64_t total_steps) { total_steps_ = total_steps; }
  // Training begins, or goes on, now.
  void start(const RunProgress& progress);
  // Time that no step took, such as that of a validation.
  void leave_out(double seconds) { recorded_at_seconds_ += seconds; }

  void step(const RunProgress& progress, const StepRecord& step, double epoch,
            std::uint64_t masks_hash);
  void epoch(std::int64_t step, std::size_t corpus, const Ledger::ClosedEpoch& epoch);
  // `results`: one for each corpus; `of_average`: of the average of the weights, all corpora.
  void validation(std::int64_t step, const std::vector<Evaluation>& results,
                  const std::optional<Evaluation>& of_average, double seconds);
  void probe(std::int64_t step, const HeldOutProbe& probe, double seconds);
  // Of an epoch of a corpus, before and after all that is left out at a step.
  struct RowsLeft {
    std::uint64_t left = 0;
    std::optional<std::uint64_t> before = {};  // not known at a start
  };
  // Corpus `corpus` goes without a shard, the run's `count`th of at most `most`.
  void excluded(const ExcludedShard& shard, std::size_t corpus, const RowsLeft& rows,
                std::size_t count, std::int64_t most);

 private:
  Console& console_;
  std::int64_t total_steps_;
  std::unique_ptr<MetricsLog> metrics_;

  // Since the last step():
  double recorded_at_seconds_ = 0;
  std::int64_t recorded_tokens_ = 0;
};

// Of a clock that only goes forward.
double now_seconds();

}  // namespace tupelo
