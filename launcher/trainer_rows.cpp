// The part of Trainer that knows which rows come next, and proves which were used.
#include <optional>
#include <utility>

#include "distributed/communicator.h"
#include "launcher/agreement.h"
#include "launcher/trainer.h"
#include "launcher/value_text.h"

namespace tupelo {

void Trainer::open_batches() {
  const Communicator& communicator = context_.communicator;
  together(context_.communicator, [&] {
    batches_ = std::make_unique<BatchStream>(
        context_.corpora, context_.config.data, order_, communicator.rank(),
        communicator.world_size(), step_,
        context_.device.is_cuda() ? std::optional(context_.device) : std::nullopt);
  });
  recorded_waits_ = {};
}

// Takes up the order of rows, with what was used of its unfinished epochs (on rank 0).
void Trainer::begin_rows(const std::vector<EpochCounts>& epochs) {
  order_ = context_.rows.order();
  on_rank_zero(context_.communicator,
               [&] { order_->keep_plans(PlanCache(context_.folder.plans())); });
  ledgers_.clear();
  for (std::size_t corpus = 0; corpus < epochs.size(); ++corpus) {
    ledgers_.emplace_back(*order_, corpus).restore(epochs[corpus]);
  }
}

void Trainer::close_epochs() {
  for (std::size_t corpus = 0; corpus < ledgers_.size(); ++corpus) {
    log_epochs(corpus, ledgers_[corpus].close_epochs(step_, context_.communicator));
  }
}

void Trainer::log_epochs(std::size_t corpus, const std::vector<Ledger::ClosedEpoch>& closed) {
  for (const Ledger::ClosedEpoch& epoch : closed) {
    log_.epoch(step_, corpus, epoch);
    TORCH_CHECK(epoch.complete, "epoch ", epoch.epoch, " of corpus ", corpus,
                " did not use each row exactly once: ", epoch.rows, " rows, ledger ",
                hex_text(epoch.hash));
  }
}

// Shards at which the next step's batches fail, on any rank, are left out by all, and the step is
// made of other rows. What is left out is durable before the run goes on.
void Trainer::leave_out_bad_shards() {
  while (step_ < last_step_ && upcoming().fails) change_rows();
  if (told_exclusions_ == context_.rows.excluded().size()) return;
  tell_excluded_shards();
  if (has_trained()) save();
}

void Trainer::change_rows() {
  const std::vector<std::exception_ptr> bad_shards = std::move(upcoming_->bad_shards);
  const std::size_t phase = order_->step(step_).phase;
  batches_.reset();
  upcoming_.reset();
  context_.rows.leave_out(bad_shards, step_, context_.communicator);
  const bool is_first = rows_before_.empty();  // since it was told of
  for (std::size_t corpus = 0; corpus < ledgers_.size(); ++corpus) {
    if (is_first) rows_before_.push_back(order_->plan(phase, corpus).rows());
    log_epochs(corpus, ledgers_[corpus].close_all_epochs(step_, context_.communicator));
  }
  context_.rows.arrange(context_.communicator);
  begin_rows(std::vector<EpochCounts>(context_.corpora.size()));
  open_batches();
}

void Trainer::tell_excluded_shards() {
  const std::vector<ExcludedShard>& excluded = context_.rows.excluded();
  const std::size_t phase = order_->step(step_).phase;
  for (; told_exclusions_ < excluded.size(); ++told_exclusions_) {
    const ExcludedShard& shard = excluded[told_exclusions_];
    std::size_t corpus = 0;
    while (context_.corpora[corpus]->info().digest != shard.shard.corpus_digest) ++corpus;
    TrainingLog::RowsLeft rows{order_->plan(phase, corpus).rows(), {}};
    if (!rows_before_.empty()) rows.before = rows_before_[corpus];
    log_.excluded(shard, corpus, rows, told_exclusions_ + 1, context_.config.train.max_bad_shards);
  }
  rows_before_.clear();
}

}  // namespace tupelo
