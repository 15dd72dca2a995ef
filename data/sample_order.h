// Which rows a step consumes, also while rows get longer and batches larger.
#pragma once

#include <cstdint>
#include <vector>

#include "data/data_options.h"
#include "data/row_plan.h"

namespace tupelo {

// A pure function of the document lengths and the options, so seeking is free.
//
// A phase is a stretch of steps with one sequence length. Its samples are numbered from 0; sample g
// is row permutation(g mod rows) of the phase's epoch g / rows. Epochs are numbered through all
// phases: the one that a phase's end cuts short is followed by the first of the next phase.
class SampleOrder {
 public:
  // Throws std::invalid_argument for a ramp whose steps do not rise, and for values out of range.
  SampleOrder(const std::vector<std::uint64_t>& document_offsets, const DataOptions& options);
  SampleOrder(const SampleOrder&) = delete;
  SampleOrder& operator=(const SampleOrder&) = delete;

  struct Step {
    const RowPlan* plan;  // the order owns it
    std::int64_t sequence_length;
    std::int64_t global_batch;
    std::uint64_t first_sample;  // of the phase
    std::uint64_t first_epoch;   // of the phase
  };
  // Step `step` >= 0.
  Step step(std::int64_t step) const;

  // The epoch that step `steps` would begin in, or be in the middle of: all before it are over once
  // `steps` steps are done.
  std::uint64_t epoch_after(std::int64_t steps) const;
  // The same with the share of that epoch that was consumed.
  double epochs_after(std::int64_t steps) const;

  struct Epoch {
    std::uint64_t rows;      // of the phase's row plan
    std::uint64_t consumed;  // fewer than `rows` when the phase ends before the epoch does
  };
  Epoch epoch(std::uint64_t epoch) const;

  // Of the first phase.
  const RowPlan& first_plan() const { return phases_.front().plan; }
  std::int64_t smallest_batch() const;

 private:
  struct Stage {  // steps with one batch size
    std::int64_t first_step, global_batch;
    std::uint64_t first_sample;
  };
  struct Phase {
    std::int64_t first_step, sequence_length;
    RowPlan plan;
    std::vector<Stage> stages;
    std::uint64_t first_epoch = 0;
    std::uint64_t samples = 0;  // of the whole phase; of the last one: without end
  };
  const Phase& phase_of_step(std::int64_t step) const;
  const Phase& phase_of_epoch(std::uint64_t epoch) const;
  static std::uint64_t samples_before(const Phase& phase, std::int64_t step);

  std::vector<Phase> phases_;
};

}  // namespace tupelo
