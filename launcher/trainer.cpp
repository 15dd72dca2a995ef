#include "launcher/trainer.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "distributed/communicator.h"
#include "launcher/agreement.h"
#include "launcher/console.h"
#include "launcher/cuda_graphs.h"
#include "launcher/held_out_probe.h"
#include "launcher/initial_weights.h"
#include "launcher/memory_forecast.h"
#include "launcher/model_parameters.h"
#include "launcher/peak_memory.h"
#include "launcher/profiler_range.h"
#include "launcher/stop_signal.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

ModelOptions model_options(const RunConfig& config, const CorpusInfo& corpus) {
  ModelOptions options = config.model;
  options.vocab_size = corpus.vocab_size;
  options.pad_id = corpus.special.pad;
  return options;
}

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

// First steps in which position parameters stand still. Counted in epochs, they are those of the
// rows that the run began with, whatever was left out since.
std::int64_t frozen_steps(const RunConfig& config, const TrainingRows& rows,
                          const std::optional<RunState>& saved) {
  if (saved && !rows.excluded().empty() &&
      config_of(*saved).optim.position_frozen_steps == config.optim.position_frozen_steps &&
      config_of(*saved).optim.positions == config.optim.positions) {
    return saved->frozen_position_steps;
  }
  return frozen_position_steps(
      config, [&](std::int64_t steps) { return rows.order()->epochs_after(steps); });
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
  if (config.train.cuda_graphs) model_->record_layers(cuda_graph_recorder(context_.device));
  order_ = context_.rows.order();
  const std::optional<RunState>& saved = context_.resumption.state;
  frozen_position_steps_ = frozen_steps(config, context_.rows, saved);
  if (saved) told_exclusions_ = saved->excluded_shards.size();
  optimizer_ = make_optimizer(
      config.optim.optimizer,
      trained_->masters(parameter_groups(*model_, config.optim, frozen_position_steps_)),
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
  if (finished()) {
    context_.console.line("nothing to do: the run is at step " + std::to_string(step_) + " of " +
                          std::to_string(last_step_));
    return ExitCode::kDone;
  }
  Communicator& communicator = context_.communicator;
  open_batches();
  model_->train();
  log_.start(progress());
  budget_.start(now_seconds());
  bool stopped = false;
  leave_out_bad_shards();
  while (step_ < last_step_ && !(stopped = upcoming().stop) && has_time()) {
    ++step_;
    record(train_step());
    close_epochs();
    leave_out_bad_shards();
    if (due(config.train.validate_every)) validate_now();
    if (due(config.train.probe_every)) probe_now();
    if (due(config.train.save_every) && has_trained() && saved_step_ != step_) save();
    budget_.step_ended(now_seconds());
  }
  if (step_ > 0 && !has_trained()) {
    throw AgreedError(
        ExitCode::kNumerics,
        gradients_overflow_
            ? "gradients overflowed float16 in all of " + std::to_string(step_) +
                  " steps, down to a loss scale of " + number_text(scaler_->scale()) +
                  ", so nothing was trained or saved; begin with a smaller train.loss-scale"
            : "loss or gradient was not finite in any of " + std::to_string(step_) +
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
  const auto peak = static_cast<double>(peak_memory_bytes(context_.device));
  // What the system tells of a peak wavers by some pages.
  peak_memory_ = std::max(peak_memory_, static_cast<std::int64_t>(context_.communicator.max(peak)));
  step.peak_memory_bytes = peak_memory_;
  const std::uint64_t masks_hash = context_.communicator.sum(masks_hash_);
  log_.step(progress(), step, order_->epochs_after(step_), masks_hash);
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
  const ProfilerRange range("validation");
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
