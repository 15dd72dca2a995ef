#include "launcher/ledger.h"

#include "data/batch_stream.h"
#include "distributed/communicator.h"

namespace tupelo {

void Ledger::record(const Batch& batch) {
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    EpochCount& count = counts_[batch.epochs[i]];
    ++count.rows;
    count.hash += row_hash(batch.epochs[i], batch.rows[i]);
  }
}

EpochCount Ledger::total(std::uint64_t epoch, Communicator& communicator) const {
  const auto found = counts_.find(epoch);
  const EpochCount own = found == counts_.end() ? EpochCount{} : found->second;
  return {communicator.sum(own.rows), communicator.sum(own.hash)};
}

std::vector<Ledger::ClosedEpoch> Ledger::close_epochs(std::uint64_t samples,
                                                      Communicator& communicator) {
  std::vector<ClosedEpoch> closed;
  for (; (open_epoch_ + 1) * rows_per_epoch_ <= samples; ++open_epoch_) {
    // Epochs that ended before this process started were closed by the process that ended them.
    if (!communicator.any(counts_.count(open_epoch_) > 0)) continue;
    const EpochCount sum = total(open_epoch_, communicator);
    const bool complete = sum.rows == rows_per_epoch_ &&
                          sum.hash == complete_epoch_hash(open_epoch_, rows_per_epoch_);
    closed.push_back({open_epoch_, sum.rows, sum.hash, complete});
    counts_.erase(open_epoch_);
  }
  return closed;
}

std::map<std::uint64_t, EpochCount> Ledger::totals(std::uint64_t samples,
                                                   Communicator& communicator) const {
  std::map<std::uint64_t, EpochCount> totals;
  const std::uint64_t epoch = samples / rows_per_epoch_;
  const EpochCount sum = total(epoch, communicator);
  if (sum.rows > 0) totals[epoch] = sum;
  return totals;
}

}  // namespace tupelo
