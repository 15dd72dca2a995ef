// Proof that every row of an epoch is used exactly once.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "launcher/run_state.h"

namespace tupelo {

struct Batch;
class Communicator;
class SampleOrder;

// Of one corpus: sums row_hash() over its rows that this rank consumed, per epoch; sums over ranks
// happen only when an epoch ends or a checkpoint is written.
class Ledger {
 public:
  // `order` outlives the ledger.
  explicit Ledger(const SampleOrder& order, std::size_t corpus = 0)
      : order_(order), corpus_(corpus) {}

  // Continues from a checkpoint: call with its counts on rank 0, with nothing on the others.
  void restore(const std::map<std::uint64_t, EpochCount>& counts) { counts_ = counts; }
  void record(const Batch& batch);

  struct ClosedEpoch {
    std::uint64_t epoch, rows, hash;
    bool cut;       // by the end of a phase, so that rows are left over
    bool complete;  // each of the epoch's rows exactly once; for a cut one, as many as were due
  };
  // Closes the epochs that are over after `steps` steps. Collective.
  std::vector<ClosedEpoch> close_epochs(std::int64_t steps, Communicator& communicator);
  // The unfinished epochs, summed over ranks. Collective.
  std::map<std::uint64_t, EpochCount> totals(std::int64_t steps, Communicator& communicator) const;

 private:
  EpochCount total(std::uint64_t epoch, Communicator& communicator) const;

  const SampleOrder& order_;
  std::size_t corpus_;
  std::uint64_t open_epoch_ = 0;
  std::map<std::uint64_t, EpochCount> counts_;
};

}  // namespace tupelo
