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

std::vector<Ledger::ClosedEpoch> Ledger::close_epochs(std::int64_t steps,
                                                      Communicator& communicator) {
  std::vector<ClosedEpoch> closed;
  for (const std::uint64_t end = order_.epoch_after(corpus_, steps); open_epoch_ < end;
       ++open_epoch_) {
    // Epochs that ended before this process started were closed by the process that ended them.
    if (!communicator.any(counts_.count(open_epoch_) > 0)) continue;
    const EpochCount sum = total(open_epoch_, communicator);
    const SampleOrder::Epoch epoch = order_.epoch(corpus_, open_epoch_);
    const bool cut = epoch.consumed < epoch.rows;
    const bool complete = sum.rows == epoch.consumed &&
                          (cut || sum.hash == complete_epoch_hash(open_epoch_, epoch.rows));
    closed.push_back({open_epoch_, sum.rows, sum.hash, cut, complete});
    counts_.erase(open_epoch_);
  }
  return closed;
}

std::map<std::uint64_t, EpochCount> Ledger::totals(std::int64_t steps,
                                                   Communicator& communicator) const {
  std::map<std::uint64_t, EpochCount> totals;
  const SampleOrder::OpenEpochs open = order_.open_epochs(corpus_, steps);
  for (std::uint64_t epoch = open.first; epoch < open.end; ++epoch) {
    const EpochCount sum = total(epoch, communicator);
    if (sum.rows > 0) totals[epoch] = sum;
  }
  return totals;
}

}  // namespace tupelo
