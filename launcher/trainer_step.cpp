// The part of Trainer that makes one step.
#include <algorithm>
#include <cmath>

#include "distributed/communicator.h"
#include "launcher/agreement.h"
#include "launcher/console.h"
#include "launcher/device_batch.h"
#include "launcher/profiler_range.h"
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

// What is summed over the micro-batches of a step, and then over ranks. It stays on the device: the
// host goes on while it is computed.
class LossSums {
 public:
  explicit LossSums(torch::Device device)
      : sums_(torch::zeros({kCount}, torch::TensorOptions(torch::kDouble).device(device))) {}

  // Loss and number of right predictions of masked tokens; the same of sentence pairs.
  void add_masked_lm(const MaskedLmOutput& output) { add(0, output.loss_sum, output.correct); }
  void add_sentence_order(const SentenceOrderOutput& output) {
    add(2, output.loss_sum, output.correct);
  }
  torch::Tensor tensor() const { return sums_; }  // [4] float64

 private:
  static constexpr std::int64_t kCount = 4;

  void add(std::int64_t first, const torch::Tensor& loss, const torch::Tensor& correct) {
    const torch::NoGradGuard no_gradients;
    sums_.select(0, first).add_(loss.detach());
    sums_.select(0, first + 1).add_(correct);
  }

  torch::Tensor sums_;
};

}  // namespace

StepRecord Trainer::train_step() {
  const ProfilerRange range("step");
  StepRecord step;
  upcoming();
  Upcoming now = std::move(*upcoming_);
  upcoming_.reset();
  use(now.micro_batches);
  const Counts& counts = now.counts;
  step.masked_tokens = static_cast<std::int64_t>(counts.masked);
  step.tokens = static_cast<std::int64_t>(counts.tokens);
  step.learning_rate = schedule_(step_ - 1);
  const torch::Tensor sums = accumulate(now.micro_batches, counts);
  clip(step);
  read_losses(sums, counts, step);
  step.skipped = !update(step);
  tokens_ += step.tokens;
  return step;
}

// The next step's batches, and what ranks have to agree on about it, once.
Trainer::Upcoming& Trainer::upcoming() {
  if (upcoming_) return *upcoming_;
  const ProfilerRange range("next batches");
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

BatchLosses Trainer::forward(const Batch& batch) {
  const ProfilerRange range("forward");
  return batch_losses(*model_, batch, context_.device);
}

// Gradients; returns LossSums::tensor(), over all ranks. On a device the host does not wait.
torch::Tensor Trainer::accumulate(std::vector<Batch>& micro_batches, const Counts& counts) {
  Communicator& communicator = context_.communicator;
  const double masked = std::max(counts.masked, 1.0), pairs = std::max(counts.pairs, 1.0);
  GradientReducer& reducer = trained_->reducer();
  reducer.zero();
  LossSums sums(context_.device);
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    reducer.overlap(context_.config.train.overlap && i + 1 == micro_batches.size());
    torch::manual_seed(dropout_seed(context_.config.data.seed, step_, communicator.rank(), i));
    const BatchLosses losses = forward(micro_batches[i]);
    torch::Tensor loss = losses.masked_lm.loss_sum / masked;
    sums.add_masked_lm(losses.masked_lm);
    if (losses.sentence_order) {
      const double weight = context_.config.objective.sop_weight / pairs;
      loss = loss + weight * losses.sentence_order->loss_sum;
      sums.add_sentence_order(*losses.sentence_order);
    }
    if (scaler_) loss = loss * scaler_->scale();
    const ProfilerRange range("backward");
    loss.backward();
  }
  const ProfilerRange range("reduce");
  reducer.finish();
  if (scaler_) trained_->divide_gradients(scaler_->scale());
  communicator.all_reduce(sums.tensor())->wait();
  return sums.tensor();
}

// Of a device, the norm is the first thing in a step that the host waits for.
void Trainer::clip(StepRecord& step) {
  const ProfilerRange range("clip");
  if (is_logged() && !position_masters_.empty()) {  // measured only
    step.position_grad_norm =
        clip_global_norm(position_masters_, /*max_norm=*/0, trained_->exchange());
  }
  step.grad_norm =
      clip_global_norm(masters_, context_.config.optim.clip_norm, trained_->exchange());
}

void Trainer::read_losses(const torch::Tensor& sums, const Counts& counts, StepRecord& step) const {
  const torch::Tensor on_host = sums.cpu();
  const auto sum = on_host.accessor<double, 1>();
  const double masked = std::max(counts.masked, 1.0);
  step.loss = sum[0] / masked;
  step.masked_accuracy = sum[1] / masked;
  if (!context_.config.data.sentence_pairs) return;
  const std::int64_t rows = order_->step(step_ - 1).global_batch;
  step.sentence_order =
      sentence_order_figures(sum[2], sum[3], counts.pairs, static_cast<double>(rows));
}

bool Trainer::update(const StepRecord& step) {
  const bool finite = std::isfinite(step.loss) && std::isfinite(step.grad_norm) &&
                      (!step.sentence_order || std::isfinite(step.sentence_order->loss));
  if (!context_.communicator.all_agree(finite)) {
    skip(step);
    return false;
  }
  skipped_in_a_row_ = 0;
  if (scaler_) scaler_->finite();
  // First what ranks exchange before the next forward pass: it would wait for what publish() sends,
  // and on a device for the update as well, which runs while the host goes on.
  if (step_ < last_step_) upcoming();
  const ProfilerRange range("update");
  optimizer_->step(step.learning_rate, step_);
  if (average_) average_->update();
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
