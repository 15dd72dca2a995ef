// Proof that every row of an epoch is used exactly once.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "data/sample_order.h"
#include "launcher/run_state.h"

namespace tupelo {

struct Batch;
class Communicator;

// Of one corpus: sums row_hash() over its rows that this rank consumed, per epoch; sums over ranks
// happen only when an epoch ends or a checkpoint is written.
class Ledger {
 public:
  // `order` outlives the ledger.
  explicit Ledger(const SampleOrder& order, std::size_t corpus = 0)
      : order_(order), corpus_(corpus), open_epoch_(order.start().epochs.at(corpus)) {}

  // Continues from a checkpoint: call with its counts on rank 0, with nothing on the others.
  void restore(const EpochCounts& counts) { counts_ = counts; }
  void record(const Batch& batch);

  struct ClosedEpoch {
    std::uint64_t epoch, rows, hash;
    bool cut;       // by the end of a phase or of the order, so that rows are left over
    bool complete;  // each of the epoch's rows exactly once; for a cut one, as many as were due
  };
  // Closes the epochs that are over after `steps` steps. Collective.
  std::vector<ClosedEpoch> close_epochs(std::int64_t steps, Communicator& communicator);
  // The same, and those that are not over: the order ends after so many steps. Collective.
  std::vector<ClosedEpoch> close_all_epochs(std::int64_t steps, Communicator& communicator);
  // The unfinished epochs, summed over ranks. Collective.
  EpochCounts totals(std::int64_t steps, Communicator& communicator) const;

 private:
  void close(const SampleOrder::Epoch& due, Communicator& communicator,
             std::vector<ClosedEpoch>& closed);
  EpochCount total(std::uint64_t epoch, Communicator& communicator) const;

  const SampleOrder& order_;
  std::size_t corpus_;
  std::uint64_t open_epoch_;  // all before it are closed
  EpochCounts counts_;
};

}  // namespace tupelo
