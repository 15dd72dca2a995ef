#include "launcher/trainer.h"

#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "distributed/communicator.h"
#include "launcher/agreement.h"
#include "launcher/console.h"
#include "launcher/device_batch.h"
#include "launcher/held_out_probe.h"
#include "launcher/initial_weights.h"
#include "launcher/model_loading.h"
#include "launcher/model_parameters.h"
#include "launcher/stop_signal.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

constexpr int kSkippedStepsLimit = 5;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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

std::vector<torch::Tensor> tensors_of(const RobertaForMaskedLm& model) {
  std::vector<torch::Tensor> tensors;
  for (const auto& parameter : model.named_parameters()) tensors.push_back(parameter.value());
  return tensors;
}

std::vector<torch::Tensor> position_tensors_of(const RobertaForMaskedLm& model) {
  const RobertaForMaskedLm::ParameterRoles roles = model.parameter_roles();
  const auto parameters = model.named_parameters();
  std::vector<torch::Tensor> tensors;
  for (const auto* names : {&roles.position_decayed, &roles.position_undecayed}) {
    for (const std::string& name : *names) tensors.push_back(parameters[name]);
  }
  return tensors;
}

// A value that differs between two tensors that differ in any bit (except with probability 2^-64).
std::uint64_t bit_hash(const torch::Tensor& tensor) {
  const torch::Tensor host = tensor.detach().cpu().contiguous();
  const auto* bytes = static_cast<const unsigned char*>(host.data_ptr());
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  std::size_t left = host.nbytes();
  for (; left >= sizeof(std::uint64_t);
       left -= sizeof(std::uint64_t), bytes += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  }
  for (; left > 0; --left, ++bytes) hash = (hash ^ *bytes) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

Trainer::Trainer(TrainerContext context) : context_(std::move(context)) {
  const RunConfig& config = context_.config;
  model_ = std::make_shared<RobertaForMaskedLm>(model_options(config, context_.corpus.info()));
  model_->to(context_.device);
  position_parameters_ = position_tensors_of(*model_);
  const RowPlan plan(context_.corpus.document_offsets(), config.data.packing,
                     config.data.sequence_length);
  optimizer_ = make_optimizer(
      config.optim.optimizer,
      parameter_groups(*model_, config.optim, frozen_position_steps(config, plan.rows())));
  reducer_ = std::make_unique<GradientReducer>(
      tensors_of(*model_), context_.communicator,
      GradientReducerOptions{static_cast<std::size_t>(config.train.bucket_bytes)});
  schedule_ = learning_rate_schedule(config);
  if (context_.communicator.rank() == 0) {
    store_ = std::make_unique<CheckpointStore>(
        context_.folder.checkpoints(),
        CheckpointStore::Options{static_cast<int>(config.train.keep_checkpoints)});
  }
}

ExitCode Trainer::train() {
  const RunConfig& config = context_.config;
  if (step_ >= config.train.steps) {
    context_.console.line("nothing to do: the run is at step " + std::to_string(step_) + " of " +
                          std::to_string(config.train.steps));
    return ExitCode::kDone;
  }
  Communicator& communicator = context_.communicator;
  together(communicator, [&] {
    batches_ = std::make_unique<BatchStream>(context_.corpus, config.data, communicator.rank(),
                                             communicator.world_size(), step_);
  });
  model_->train();
  recorded_at_seconds_ = now_seconds();
  bool stopped = false;
  while (step_ < config.train.steps && !(stopped = stop_agreed())) {
    ++step_;
    record(train_step());
    close_epochs();
    if (due(config.train.validate_every)) validate_now();
    if (due(config.train.probe_every)) probe_now();
    if (due(config.train.save_every)) save();
  }
  if (saved_step_ != step_) save();
  if (!stopped) return ExitCode::kDone;
  const bool interrupted = communicator.any(context_.stop.received() == SIGINT);
  context_.console.notice("stopped by a signal at step " + std::to_string(step_) +
                          "; the state is saved, start the same command again to go on");
  return interrupted ? ExitCode::kInterrupted : ExitCode::kPreempted;
}

bool Trainer::stop_agreed() { return context_.communicator.any(context_.stop.received() != 0); }

StepRecord Trainer::train_step() {
  StepRecord step;
  const double started = now_seconds();
  std::vector<Batch> micro_batches = batches_->next();
  step.data_wait_seconds = now_seconds() - started;

  double masked = 0, tokens = 0;
  for (const Batch& batch : micro_batches) {
    masked += static_cast<double>(batch.labels.numel());
    tokens += static_cast<double>(batch.tokens);
    masks_hash_ += batch.masks_hash;
    ledger_->record(batch);
  }
  const auto counts = context_.communicator.sum(std::vector<double>{masked, tokens});
  step.masked_tokens = static_cast<std::int64_t>(counts[0]);
  step.tokens = static_cast<std::int64_t>(counts[1]);

  accumulate(micro_batches, std::max(counts[0], 1.0), step);
  step.learning_rate = schedule_(step_ - 1);
  step.skipped = !update(step);
  tokens_ += step.tokens;
  return step;
}

void Trainer::accumulate(std::vector<Batch>& micro_batches, double masked, StepRecord& step) {
  Communicator& communicator = context_.communicator;
  reducer_->zero();
  torch::Tensor loss, correct;
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    reducer_->overlap(context_.config.train.overlap && i + 1 == micro_batches.size());
    torch::manual_seed(dropout_seed(context_.config.data.seed, step_, communicator.rank(), i));
    const MaskedLmOutput output = masked_lm_loss(*model_, micro_batches[i], context_.device);
    (output.loss_sum / masked).backward();
    const torch::Tensor detached = output.loss_sum.detach().to(torch::kDouble);
    loss = loss.defined() ? loss + detached : detached;
    correct = correct.defined() ? correct + output.correct : output.correct;
  }
  reducer_->finish();
  const auto sums = communicator.sum(
      std::vector<double>{loss.item<double>(), static_cast<double>(correct.item<std::int64_t>())});
  step.loss = sums[0] / masked;
  step.masked_accuracy = sums[1] / masked;
}

bool Trainer::update(StepRecord& step) {
  if (is_logged() && !position_parameters_.empty()) {
    step.position_grad_norm = clip_global_norm(position_parameters_, /*max_norm=*/0);  // measures
  }
  step.grad_norm = clip_global_norm(reducer_->parameters(), context_.config.optim.clip_norm);
  const bool finite = std::isfinite(step.loss) && std::isfinite(step.grad_norm);
  if (context_.communicator.all_agree(finite)) {
    skipped_in_a_row_ = 0;
    optimizer_->step(step.learning_rate, step_);
    return true;
  }
  ++skipped_steps_;
  if (++skipped_in_a_row_ >= kSkippedStepsLimit) {
    throw AgreedError(ExitCode::kNumerics,
                      "loss or gradient was not finite in " + std::to_string(kSkippedStepsLimit) +
                          " steps in a row, up to step " + std::to_string(step_) +
                          "; lower optim.learning-rate or lengthen optim.warmup");
  }
  context_.console.notice("step " + std::to_string(step_) +
                          ": loss or gradient is not finite; no update");
  return false;
}

void Trainer::record(const StepRecord& step) {
  waited_seconds_ += step.data_wait_seconds;
  const RunConfig& config = context_.config;
  if (!is_logged() && !step.skipped) return;
  const std::uint64_t masks_hash = context_.communicator.sum(masks_hash_);
  if (context_.communicator.rank() != 0) return;

  const double elapsed = now_seconds() - recorded_at_seconds_;
  const double rate = static_cast<double>(tokens_ - recorded_tokens_) / elapsed;
  const std::uint64_t rows = batches_->plan().rows();
  nlohmann::ordered_json object = {
      {"step", step_},
      {"epoch", static_cast<double>(samples()) / static_cast<double>(rows)},
      {"loss", step.loss},
      {"masked_accuracy", step.masked_accuracy},
      {"masked_tokens", step.masked_tokens},
      {"learning_rate", step.learning_rate},
      {"grad_norm", step.grad_norm},
      {"tokens", tokens_},
      {"tokens_per_second", rate},
      {"data_wait_seconds", waited_seconds_},
      {"masks_hash", hex_text(masks_hash)}};
  if (step.position_grad_norm) object["position_grad_norm"] = *step.position_grad_norm;
  if (step.skipped) object["skipped"] = true;
  metrics_->append(object.dump());

  const double steps_since = static_cast<double>(tokens_ - recorded_tokens_) /
                             static_cast<double>(std::max<std::int64_t>(step.tokens, 1));
  const double eta = elapsed / steps_since * static_cast<double>(config.train.steps - step_);
  context_.console.milestone(
      "step " + std::to_string(step_) + "/" + std::to_string(config.train.steps) + "  loss " +
      significant(step.loss, 5) + "  accuracy " + significant(100 * step.masked_accuracy, 3) +
      "%  lr " + significant(step.learning_rate, 3) + "  |g| " + significant(step.grad_norm, 3) +
      "  " + grouped(static_cast<std::int64_t>(rate)) + " tokens/s  ETA " + duration_text(eta));
  recorded_at_seconds_ = now_seconds();
  recorded_tokens_ = tokens_;
  waited_seconds_ = 0;
}

void Trainer::close_epochs() {
  for (const auto& closed :
       ledger_->close_epochs(static_cast<std::uint64_t>(samples()), context_.communicator)) {
    if (metrics_) {
      metrics_->append(nlohmann::ordered_json{{"step", step_},
                                              {"event", "epoch"},
                                              {"finished_epoch", closed.epoch},
                                              {"rows", closed.rows},
                                              {"ledger", hex_text(closed.hash)},
                                              {"complete", closed.complete}}
                           .dump());
    }
    TORCH_CHECK(closed.complete, "epoch ", closed.epoch,
                " did not use each row exactly once: ", closed.rows, " rows, ledger ",
                hex_text(closed.hash));
  }
}

void Trainer::validate_now() {
  const double started = now_seconds();
  const Evaluation result =
      evaluate(*model_, context_.held_out, context_.config.data,
               context_.config.train.validate_rows, context_.device, context_.communicator);
  // Validation must not count as slow training.
  recorded_at_seconds_ += now_seconds() - started;
  if (metrics_) {
    metrics_->append(nlohmann::ordered_json{{"step", step_},
                                            {"event", "validation"},
                                            {"validation_loss", result.loss},
                                            {"validation_perplexity", result.perplexity},
                                            {"validation_masked_accuracy", result.masked_accuracy},
                                            {"validation_masked_tokens", result.masked_tokens},
                                            {"validation_rows", result.rows},
                                            {"seconds", now_seconds() - started}}
                         .dump());
  }
  context_.console.line("step " + std::to_string(step_) + "  held-out loss " +
                        significant(result.loss, 5) + "  perplexity " +
                        significant(result.perplexity, 4) + "  accuracy " +
                        significant(100 * result.masked_accuracy, 3) + "%");
}

void Trainer::probe_now() {
  const double started = now_seconds();
  on_rank_zero(context_.communicator, [&] {
    const HeldOutProbe probe =
        probe_held_out(*model_, context_.held_out, context_.config.data, context_.device);
    nlohmann::ordered_json record = {{"step", step_}, {"event", "probe"}};
    record.update(probe_json(probe));
    record["seconds"] = now_seconds() - started;
    metrics_->append(record.dump());
  });
  recorded_at_seconds_ += now_seconds() - started;
}

RunState Trainer::current_state() const {
  RunState state;
  ConfigBuilder builder;
  builder.config() = context_.config;
  const CorpusInfo& corpus = context_.corpus.info();
  state.config_ini = builder.to_ini(false);
  state.position_plan = model_->position_plan();
  state.vocab_size = corpus.vocab_size;
  state.pad_id = corpus.special.pad;
  state.tokenizer_fingerprint = corpus.tokenizer_fingerprint;
  state.corpus_digest = corpus.digest;
  state.corpus = context_.corpus_folder;
  state.step = step_;
  state.tokens = tokens_;
  state.skipped_steps = skipped_steps_;
  state.world_size = context_.communicator.world_size();
  state.threads = context_.threads;
  state.torch_version = TORCH_VERSION;
  state.cpu_capability = at::get_cpu_capability();
  return state;
}

NamedTensors Trainer::model_tensors() const {
  NamedTensors tensors;
  for (const auto& parameter : model_->named_parameters()) {
    tensors.emplace_back(parameter.key(), parameter.value().detach());
  }
  return tensors;
}

void Trainer::require_equal_replicas() {
  std::uint64_t hash = 0;
  for (const auto& [name, tensor] : model_tensors()) hash = hash * 31 + bit_hash(tensor);
  const std::string first = context_.communicator.broadcast(hex_text(hash), 0);
  const bool equal = context_.communicator.all_agree(first == hex_text(hash));
  TORCH_CHECK(equal, "the ranks' parameters differ at step ", step_,
              "; memory or network corrupted a replica, nothing was saved");
}

void Trainer::save() {
  require_equal_replicas();
  RunState state = current_state();
  Communicator& communicator = context_.communicator;
  state.epochs = ledger_->totals(static_cast<std::uint64_t>(samples()), communicator);
  state.masks_hash = communicator.sum(masks_hash_);
  const double started = now_seconds();
  on_rank_zero(communicator, [&] {
    Checkpoint checkpoint;
    checkpoint.step = step_;
    checkpoint.files["model"] = model_tensors();
    checkpoint.files["optimizer"] = optimizer_->state();
    checkpoint.state_json = to_json(state);
    const auto folder = store_->save(checkpoint);
    context_.console.line("step " + std::to_string(step_) + "  saved " + folder.string());
  });
  saved_step_ = step_;
  recorded_at_seconds_ += now_seconds() - started;
}

void Trainer::restore_tensors(const Checkpoint& checkpoint) {
  const torch::NoGradGuard no_gradients;
  const auto model_file = checkpoint.files.find("model");
  const auto optimizer_file = checkpoint.files.find("optimizer");
  if (model_file == checkpoint.files.end() || optimizer_file == checkpoint.files.end()) {
    throw CorruptCheckpoint("checkpoint of step " + std::to_string(checkpoint.step) +
                            " lacks its model or optimizer file");
  }
  load_parameters(*model_, model_file->second);
  optimizer_->load_state(optimizer_file->second);
}

void Trainer::broadcast_tensors() {
  const torch::NoGradGuard no_gradients;
  for (const auto& [name, tensor] : model_tensors())
    context_.communicator.broadcast(tensor, 0)->wait();
  for (const auto& [name, tensor] : optimizer_->state()) {
    context_.communicator.broadcast(tensor, 0)->wait();
  }
}

void Trainer::restore() {
  Communicator& communicator = context_.communicator;
  model_->initialize(context_.config.data.seed);
  std::map<std::uint64_t, EpochCount> epochs;
  on_rank_zero(communicator, [&] {
    const auto checkpoint = store_->load_newest([&](std::int64_t step, const std::string& reason) {
      context_.console.notice("checkpoint of step " + std::to_string(step) +
                              " is not used: " + reason);
    });
    if (!checkpoint && context_.initial != nullptr) {
      context_.initial->load_into(*model_);
      context_.console.line("starting from " + context_.initial->summary());
    }
    if (checkpoint) {
      const RunState saved = run_state_from_json(checkpoint->state_json);
      const RunState current = current_state();
      require_same_run(saved, current);
      restore_tensors(*checkpoint);
      step_ = saved.step;
      tokens_ = saved.tokens;
      skipped_steps_ = saved.skipped_steps;
      masks_hash_ = saved.masks_hash;
      epochs = saved.epochs;
      resumed_ = true;
      const std::string differences = bit_differences(saved, current);
      context_.console.line("resuming at step " + std::to_string(step_));
      if (!differences.empty()) {
        context_.console.notice("the continued run is equal up to rounding, not bit for bit: " +
                                differences);
      }
    }
    metrics_ = std::make_unique<MetricsLog>(context_.folder.metrics(), step_);
  });
  step_ = std::stoll(communicator.broadcast(std::to_string(step_), 0));
  tokens_ = std::stoll(communicator.broadcast(std::to_string(tokens_), 0));
  skipped_steps_ = std::stoll(communicator.broadcast(std::to_string(skipped_steps_), 0));
  recorded_tokens_ = tokens_;
  resumed_ = communicator.any(resumed_);
  if (resumed_) saved_step_ = step_;
  broadcast_tensors();
  const RowPlan plan(context_.corpus.document_offsets(), context_.config.data.packing,
                     context_.config.data.sequence_length);
  ledger_ = std::make_unique<Ledger>(plan.rows());
  ledger_->restore(epochs);
}

}  // namespace tupelo
