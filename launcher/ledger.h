// Proof that every row of an epoch is used exactly once.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "launcher/run_state.h"

namespace tupelo {

struct Batch;
class Communicator;

// Sums row_hash() over the rows that this rank consumed, per epoch; sums over ranks happen only
// when an epoch ends or a checkpoint is written.
class Ledger {
 public:
  explicit Ledger(std::uint64_t rows_per_epoch) : rows_per_epoch_(rows_per_epoch) {}

  // Continues from a checkpoint: call with its counts on rank 0, with nothing on the others.
  void restore(const std::map<std::uint64_t, EpochCount>& counts) { counts_ = counts; }
  void record(const Batch& batch);

  struct ClosedEpoch {
    std::uint64_t epoch, rows, hash;
    bool complete;  // each of the epoch's rows exactly once
  };
  // Closes the epochs that `samples` consumed samples complete. Collective.
  std::vector<ClosedEpoch> close_epochs(std::uint64_t samples, Communicator& communicator);
  // The unfinished epochs, summed over ranks. Collective.
  std::map<std::uint64_t, EpochCount> totals(std::uint64_t samples,
                                             Communicator& communicator) const;

 private:
  EpochCount total(std::uint64_t epoch, Communicator& communicator) const;

  std::uint64_t rows_per_epoch_;
  std::uint64_t open_epoch_ = 0;
  std::map<std::uint64_t, EpochCount> counts_;
};

}  // namespace tupelo
