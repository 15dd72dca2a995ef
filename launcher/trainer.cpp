#include "launcher/trainer.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "distributed/communicator.h"
#include "launcher/agreement.h"
#include "launcher/console.h"
#include "launcher/device_batch.h"
#include "launcher/held_out_probe.h"
#include "launcher/initial_weights.h"
#include "launcher/memory_forecast.h"
#include "launcher/model_parameters.h"
#include "launcher/stop_signal.h"
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

ModelOptions model_options(const RunConfig& config, const CorpusInfo& corpus) {
  ModelOptions options = config.model;
  options.vocab_size = corpus.vocab_size;
  options.pad_id = corpus.special.pad;
  return options;
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

std::vector<std::string> names_of(const RobertaForMaskedLm& model) {
  std::vector<std::string> names;
  for (const auto& parameter : model.named_parameters()) names.push_back(parameter.key());
  return names;
}

std::vector<std::string> position_names_of(const RobertaForMaskedLm& model) {
  const RobertaForMaskedLm::ParameterRoles roles = model.parameter_roles();
  std::vector<std::string> names = roles.position_decayed;
  names.insert(names.end(), roles.position_undecayed.begin(), roles.position_undecayed.end());
  return names;
}

std::shared_ptr<const SampleOrder> order_of(const std::vector<const ShardedCorpus*>& corpora,
                                            const DataOptions& options, const PlanCache& plans) {
  std::vector<std::uint64_t> tokens;
  for (const ShardedCorpus* corpus : corpora) tokens.push_back(corpus->tokens());
  const std::vector<double> weights = mixture_weights(options.mixture, tokens);
  std::vector<MixturePart> parts;
  for (std::size_t i = 0; i < corpora.size(); ++i) {
    parts.emplace_back(corpora[i]->document_table(), weights[i]);
    parts.back().name = corpora[i]->info().digest + " train";
  }
  return std::make_shared<SampleOrder>(parts, options, &plans);
}

}  // namespace

Trainer::Trainer(TrainerContext context)
    : context_(std::move(context)),
      log_(context_.console, context_.config.train.steps),
      cooldown_(cooldown_span(context_.config)),
      budget_(parse_time_span(context_.config.train.max_time)),
      last_step_(context_.config.train.steps) {
  const RunConfig& config = context_.config;
  model_ =
      std::make_shared<RobertaForMaskedLm>(model_options(config, context_.corpora.front()->info()));
  model_->initialize(config.data.seed);
  if (context_.initial != nullptr && context_.communicator.rank() == 0) {
    context_.initial->load_into(*model_);
  }
  model_->to(context_.device);
  trained_ = std::make_unique<TrainedParameters>(*model_, config.train, context_.shard_groups);
  masters_ = trained_->masters(names_of(*model_));
  position_masters_ = trained_->masters(position_names_of(*model_));
  recompute_text_ = resolve_recompute(*model_, config);
  order_ = order_of(context_.corpora, config.data, PlanCache(context_.folder.plans()));
  const auto epochs_after = [&](std::int64_t steps) { return order_->epochs_after(steps); };
  optimizer_ =
      make_optimizer(config.optim.optimizer,
                     trained_->masters(parameter_groups(
                         *model_, config.optim, frozen_position_steps(config, epochs_after))),
                     trained_->exchange());
  if (config.train.precision == "fp16") scaler_.emplace(config.train.loss_scale);
  schedule_ = learning_rate_schedule(config, cooldown_);
  if (config.train.ema_decay > 0) {
    average_.emplace(trained_->masters(), config.train.ema_decay);
  }
}

std::string Trainer::memory_text() const {
  const TrainedParameters::Memory memory = trained_->memory();
  std::size_t state = 0;
  for (const auto& [name, tensor] : optimizer_->state()) state += tensor.nbytes();
  if (average_) {
    for (const auto& [name, tensor] : average_->tensors()) state += tensor.nbytes();
  }
  const auto text = [](std::size_t bytes) { return bytes_text(static_cast<std::int64_t>(bytes)); };
  std::string line = "memory    parameters " + text(memory.parameters);
  line.append(" (").append(context_.config.train.precision).append("), gradients ");
  line.append(text(memory.gradients));
  if (memory.masters > 0) line.append(", float32 copies ").append(text(memory.masters));
  line.append(", optimizer ").append(text(state)).append(" per rank");
  if (trained_->exchange() != nullptr) {
    line.append(", 1/").append(std::to_string(trained_->shard_count()));
    line.append(" of the last");
    if (memory.masters > 0) line.append(" two");
  }
  return line;
}

ExitCode Trainer::train() {
  const RunConfig& config = context_.config;
  if (step_ >= last_step_) {
    context_.console.line("nothing to do: the run is at step " + std::to_string(step_) + " of " +
                          std::to_string(last_step_));
    return ExitCode::kDone;
  }
  Communicator& communicator = context_.communicator;
  together(communicator, [&] {
    batches_ = std::make_unique<BatchStream>(context_.corpora, config.data, order_,
                                             communicator.rank(), communicator.world_size(), step_);
  });
  model_->train();
  log_.start(progress());
  budget_.start(now_seconds());
  bool stopped = false;
  while (step_ < last_step_ && !(stopped = upcoming().stop) && has_time()) {
    ++step_;
    record(train_step());
    close_epochs();
    if (due(config.train.validate_every)) validate_now();
    if (due(config.train.probe_every)) probe_now();
    if (due(config.train.save_every)) save();
    budget_.step_ended(now_seconds());
  }
  if (step_ > 0 && skipped_steps_ == step_) {
    throw AgreedError(ExitCode::kNumerics,
                      "loss or gradient was not finite in any of " + std::to_string(step_) +
                          " steps, so nothing was trained or saved; look at model.position, its "
                          "options, and model.initializer-range");
  }
  if (saved_step_ != step_) save();
  if (!stopped) return ExitCode::kDone;
  const bool interrupted = communicator.any(context_.stop.received() == SIGINT);
  context_.console.notice("stopped by a signal at step " + std::to_string(step_) +
                          "; the state is saved, start the same command again to go on");
  return interrupted ? ExitCode::kInterrupted : ExitCode::kPreempted;
}

// Whether another step fits into train.max-time, by the clock of rank 0. When only a cool-down
// does, it begins here; one that has begun runs to its end.
bool Trainer::has_time() {
  if (!budget_.is_limited() || is_cooling_down()) return true;
  const CooldownSpan from_here = cooldown_span_from(context_.config, step_);
  const double now = now_seconds();
  std::string verdict = "go on";
  if (from_here.steps > 0 && budget_.is_time_for(from_here.steps, now)) {
    verdict = "cool down";
  } else if (budget_.is_over(now)) {
    verdict = "end";
  }
  verdict = context_.communicator.broadcast(verdict, 0);
  if (verdict == "cool down") {
    context_.console.line("step " + std::to_string(step_) + "  train.max-time " +
                          context_.config.train.max_time + " leaves a cool-down of " +
                          std::to_string(from_here.steps) + " steps, to step " +
                          std::to_string(from_here.end()));
    cool_down(from_here);
    if (step_ > 0 && saved_step_ != step_) save();
  } else if (verdict == "end") {
    context_.console.line("step " + std::to_string(step_) + " of " + std::to_string(last_step_) +
                          "  train.max-time " + context_.config.train.max_time +
                          " is used up; with more the same command goes on");
  }
  return verdict != "end";
}

void Trainer::cool_down(const CooldownSpan& span) {
  cooldown_by_time_ = true;
  cooldown_ = span;
  last_step_ = span.end();
  schedule_ = learning_rate_schedule(context_.config, span);
  log_.end_at(last_step_);
}

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
  upcoming_->micro_batches = batches_->next();
  double masked = 0, tokens = 0, pairs = 0;
  for (const Batch& batch : upcoming_->micro_batches) {
    masked += static_cast<double>(batch.labels.numel());
    tokens += static_cast<double>(batch.tokens);
    if (batch.pair_rows.defined()) pairs += static_cast<double>(batch.pair_rows.numel());
  }
  const double told = context_.stop.received() != 0 ? 1 : 0;
  const auto sums = context_.communicator.sum(std::vector<double>{masked, tokens, pairs, told});
  upcoming_->counts = {sums[0], sums[1], sums[2]};
  upcoming_->stop = sums[3] > 0;
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
  if (scaler_ && std::isfinite(step.loss) && scaler_->overflowed()) {
    context_.console.notice("step " + std::to_string(step_) +
                            ": gradients overflow float16; no update, and losses are multiplied "
                            "by " +
                            number_text(scaler_->scale()) + " from here");
    return;
  }
  if (++skipped_in_a_row_ >= kSkippedStepsLimit) {
    throw AgreedError(ExitCode::kNumerics,
                      "loss or gradient was not finite in " + std::to_string(kSkippedStepsLimit) +
                          " steps in a row, up to step " + std::to_string(step_) +
                          "; lower optim.learning-rate or lengthen optim.warmup");
  }
  context_.console.notice("step " + std::to_string(step_) +
                          ": loss or gradient is not finite; no update");
}

void Trainer::count_waits(StepRecord& step) {
  const BatchStream::Waits waits = batches_->waits();
  const auto sums = context_.communicator.sum(
      std::vector<double>{1000 * (waits.seconds - recorded_waits_.seconds),
                          static_cast<double>(waits.steps - recorded_waits_.steps)});
  recorded_waits_ = waits;
  step.loader_wait_ms = sums[0] / context_.communicator.world_size();
  step.loader_late_steps = static_cast<std::int64_t>(sums[1]);
}

void Trainer::record(StepRecord step) {
  if (!is_logged() && !step.skipped) return;
  count_waits(step);
  const std::uint64_t masks_hash = context_.communicator.sum(masks_hash_);
  log_.step(progress(), step, order_->epochs_after(step_), masks_hash);
}

void Trainer::close_epochs() {
  for (std::size_t corpus = 0; corpus < ledgers_.size(); ++corpus) {
    for (const auto& closed : ledgers_[corpus].close_epochs(step_, context_.communicator)) {
      log_.epoch(step_, corpus, closed);
      TORCH_CHECK(closed.complete, "epoch ", closed.epoch, " of corpus ", corpus,
                  " did not use each row exactly once: ", closed.rows, " rows, ledger ",
                  hex_text(closed.hash));
    }
  }
}

std::vector<Evaluation> Trainer::evaluations() {
  std::vector<Evaluation> results;
  for (const ShardedCorpus* corpus : context_.held_out) {
    results.push_back(evaluate(*model_, *corpus, context_.config.data,
                               context_.config.train.validate_rows, context_.device,
                               context_.communicator));
  }
  return results;
}

// The model computes with the average of the weights instead of them, or with them again.
void Trainer::swap_average() {
  trained_->wait();
  average_->swap();
  trained_->publish();
}

void Trainer::validate_now() {
  const double started = now_seconds();
  const std::vector<Evaluation> results = evaluations();
  std::optional<Evaluation> of_average;
  if (average_) {
    swap_average();
    of_average = combined(evaluations());
    swap_average();
  }
  const double seconds = now_seconds() - started;
  log_.validation(step_, results, of_average, seconds);
  log_.leave_out(seconds);
}

void Trainer::probe_now() {
  const double started = now_seconds();
  trained_->wait();
  on_rank_zero(context_.communicator, [&] {
    const HeldOutProbe probe =
        probe_held_out(*model_, *context_.held_out.front(), context_.config.data, context_.device);
    log_.probe(step_, probe, now_seconds() - started);
  });
  log_.leave_out(now_seconds() - started);
}

}  // namespace tupelo
