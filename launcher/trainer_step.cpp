// The part of Trainer that makes one step.
#include <algorithm>
#include <cmath>

#include "distributed/communicator.h"
#include "launcher/agreement.h"
#include "launcher/console.h"
#include "launcher/device_batch.h"
#include "launcher/stop_signal.h"
#include "launcher/trainer.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

constexpr int kSkippedStepsLimit = 5;

// Mixes the coordinates of a micro-batch into the seed of its dropout, so that no generator state
// has to survive a restart. (SplitMix64's finalizer: https://prng.di.unimi.it/splitmix64.c)
std::uint64_t dropout_seed(std::uint64_t seed, std::int64_t step, int rank,
                           std::size_t micro_batch) {
  std::uint64_t mixed = seed;
  for (std::uint64_t part : {static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(rank),
                             static_cast<std::uint64_t>(micro_batch)}) {
    mixed += 0x9e3779b97f4a7c15ULL + part;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    mixed ^= mixed >> 31;
  }
  return mixed;
}

// Over the micro-batches of a step; stays on the device until it is asked for.
class LossSums {
 public:
  void add(const torch::Tensor& loss, const torch::Tensor& correct) {
    const torch::Tensor detached = loss.detach().to(torch::kDouble);
    loss_ = loss_.defined() ? loss_ + detached : detached;
    correct_ = correct_.defined() ? correct_ + correct : correct;
  }
  double loss() const { return loss_.defined() ? loss_.item<double>() : 0; }
  double correct() const {
    return correct_.defined() ? static_cast<double>(correct_.item<std::int64_t>()) : 0;
  }

 private:
  torch::Tensor loss_, correct_;
};

}  // namespace

StepRecord Trainer::train_step() {
  StepRecord step;
  upcoming();
  Upcoming now = std::move(*upcoming_);
  upcoming_.reset();
  use(now.micro_batches);
  const Counts& counts = now.counts;
  step.masked_tokens = static_cast<std::int64_t>(counts.masked);
  step.tokens = static_cast<std::int64_t>(counts.tokens);
  accumulate(now.micro_batches, counts, step);
  step.learning_rate = schedule_(step_ - 1);
  step.skipped = !update(step);
  tokens_ += step.tokens;
  return step;
}

// The next step's batches, and what ranks have to agree on about it, once.
Trainer::Upcoming& Trainer::upcoming() {
  if (upcoming_) return *upcoming_;
  upcoming_.emplace();
  try {
    upcoming_->micro_batches = batches_->next();
  } catch (const BadShard&) {  // as any rank's is everybody's
    upcoming_->bad_shards = batches_->bad_shards();
  }
  double masked = 0, tokens = 0, pairs = 0;
  for (const Batch& batch : upcoming_->micro_batches) {
    masked += static_cast<double>(batch.labels.numel());
    tokens += static_cast<double>(batch.tokens);
    if (batch.pair_rows.defined()) pairs += static_cast<double>(batch.pair_rows.numel());
  }
  const double told = context_.stop.received() != 0 ? 1 : 0;
  const double fails = upcoming_->bad_shards.empty() ? 0 : 1;
  const auto sums =
      context_.communicator.sum(std::vector<double>{masked, tokens, pairs, told, fails});
  upcoming_->counts = {sums[0], sums[1], sums[2]};
  upcoming_->stop = sums[3] > 0;
  upcoming_->fails = sums[4] > 0;
  return *upcoming_;
}

void Trainer::use(const std::vector<Batch>& micro_batches) {
  for (const Batch& batch : micro_batches) {
    masks_hash_ += batch.masks_hash;
    for (Ledger& ledger : ledgers_) ledger.record(batch);
  }
}

void Trainer::accumulate(std::vector<Batch>& micro_batches, const Counts& counts,
                         StepRecord& step) {
  Communicator& communicator = context_.communicator;
  const double masked = std::max(counts.masked, 1.0), pairs = std::max(counts.pairs, 1.0);
  GradientReducer& reducer = trained_->reducer();
  reducer.zero();
  LossSums masked_lm, sentence_order;
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    reducer.overlap(context_.config.train.overlap && i + 1 == micro_batches.size());
    torch::manual_seed(dropout_seed(context_.config.data.seed, step_, communicator.rank(), i));
    const BatchLosses losses = batch_losses(*model_, micro_batches[i], context_.device);
    torch::Tensor loss = losses.masked_lm.loss_sum / masked;
    masked_lm.add(losses.masked_lm.loss_sum, losses.masked_lm.correct);
    if (losses.sentence_order) {
      const double weight = context_.config.objective.sop_weight / pairs;
      loss = loss + weight * losses.sentence_order->loss_sum;
      sentence_order.add(losses.sentence_order->loss_sum, losses.sentence_order->correct);
    }
    if (scaler_) loss = loss * scaler_->scale();
    loss.backward();
  }
  reducer.finish();
  if (scaler_) trained_->divide_gradients(scaler_->scale());
  const auto sums = communicator.sum(std::vector<double>{
      masked_lm.loss(), masked_lm.correct(), sentence_order.loss(), sentence_order.correct()});
  step.loss = sums[0] / masked;
  step.masked_accuracy = sums[1] / masked;
  if (context_.config.data.sentence_pairs) {
    const std::int64_t rows = order_->step(step_ - 1).global_batch;
    step.sentence_order =
        sentence_order_figures(sums[2], sums[3], counts.pairs, static_cast<double>(rows));
  }
}

bool Trainer::update(StepRecord& step) {
  if (is_logged() && !position_masters_.empty()) {  // measured only
    step.position_grad_norm =
        clip_global_norm(position_masters_, /*max_norm=*/0, trained_->exchange());
  }
  step.grad_norm =
      clip_global_norm(masters_, context_.config.optim.clip_norm, trained_->exchange());
  const bool finite = std::isfinite(step.loss) && std::isfinite(step.grad_norm) &&
                      (!step.sentence_order || std::isfinite(step.sentence_order->loss));
  if (!context_.communicator.all_agree(finite)) {
    skip(step);
    return false;
  }
  skipped_in_a_row_ = 0;
  if (scaler_) scaler_->finite();
  optimizer_->step(step.learning_rate, step_);
  if (average_) average_->update();
  // First what ranks exchange before the next forward pass, which else would wait for all that
  // publish() sends.
  if (step_ < last_step_) upcoming();
  trained_->publish();
  return true;
}

void Trainer::skip(const StepRecord& step) {
  ++skipped_steps_;
  // A loss that overflows in the forward pass does so at any scale.
  gradients_overflow_ = scaler_ && std::isfinite(step.loss);
  const std::string what =
      gradients_overflow_ ? "gradients overflow float16" : "loss or gradient is not finite";
  if (gradients_overflow_ && scaler_->overflowed()) {
    context_.console.notice("step " + std::to_string(step_) + ": " + what +
                            "; no update, and losses are multiplied by " +
                            number_text(scaler_->scale()) + " from here");
    return;
  }
  if (++skipped_in_a_row_ >= kSkippedStepsLimit) {
    throw AgreedError(
        ExitCode::kNumerics,
        what + " in " + std::to_string(kSkippedStepsLimit) + " steps in a row, up to step " +
            std::to_string(step_) + "; " +
            (gradients_overflow_
                 ? "the loss scale is at its least, " + number_text(scaler_->scale()) +
                       ": lower train.least-loss-scale, or take bf16"
                 : "lower optim.learning-rate or lengthen optim.warmup"));
  }
  context_.console.notice("step " + std::to_string(step_) + ": " + what + "; no update");
}

}  // namespace tupelo
