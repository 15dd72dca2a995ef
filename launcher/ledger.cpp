#include "launcher/ledger.h"

#include "data/batch_stream.h"
#include "distributed/communicator.h"

namespace tupelo {

void Ledger::record(const Batch& batch) {
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    if (batch.corpora[i] != corpus_) continue;
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

// Closes the open epoch, which had so many rows to use. One that ended before this process started
// was closed by the process that ended it.
void Ledger::close(const SampleOrder::Epoch& due, Communicator& communicator,
                   std::vector<ClosedEpoch>& closed) {
  if (!communicator.any(counts_.count(open_epoch_) > 0)) return;
  const EpochCount sum = total(open_epoch_, communicator);
  const bool cut = due.consumed < due.rows;
  const bool complete =
      sum.rows == due.consumed && (cut || sum.hash == complete_epoch_hash(open_epoch_, due.rows));
  closed.push_back({open_epoch_, sum.rows, sum.hash, cut, complete});
  counts_.erase(open_epoch_);
}

std::vector<Ledger::ClosedEpoch> Ledger::close_epochs(std::int64_t steps,
                                                      Communicator& communicator) {
  std::vector<ClosedEpoch> closed;
  for (const std::uint64_t end = order_.epoch_after(corpus_, steps); open_epoch_ < end;
       ++open_epoch_) {
    close(order_.epoch(corpus_, open_epoch_), communicator, closed);
  }
  return closed;
}

std::vector<Ledger::ClosedEpoch> Ledger::close_all_epochs(std::int64_t steps,
                                                          Communicator& communicator) {
  std::vector<ClosedEpoch> closed = close_epochs(steps, communicator);
  for (const std::uint64_t end = order_.open_epochs(corpus_, steps).end; open_epoch_ < end;
       ++open_epoch_) {
    close(order_.epoch_after_steps(corpus_, open_epoch_, steps), communicator, closed);
  }
  return closed;
}

EpochCounts Ledger::totals(std::int64_t steps, Communicator& communicator) const {
  EpochCounts totals;
  const SampleOrder::OpenEpochs open = order_.open_epochs(corpus_, steps);
  for (std::uint64_t epoch = open.first; epoch < open.end; ++epoch) {
    const EpochCount sum = total(epoch, communicator);
    if (sum.rows > 0) totals[epoch] = sum;
  }
  return totals;
}

}  // namespace tupelo
