// The half of Trainer that saves a run and takes it up again.
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <torch/version.h>

#include <cstring>

#include "distributed/communicator.h"
#include "launcher/agreement.h"
#include "launcher/console.h"
#include "launcher/initial_weights.h"
#include "launcher/model_loading.h"
#include "launcher/trainer.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

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

RunState Trainer::current_state() const {
  RunState state;
  ConfigBuilder builder;
  builder.config() = context_.config;
  const CorpusInfo& corpus = context_.corpora.front()->info();
  state.config_ini = builder.to_ini(false);
  state.position_plan = model_->position_plan();
  state.vocab_size = corpus.vocab_size;
  state.pad_id = corpus.special.pad;
  state.tokenizer_fingerprint = corpus.tokenizer_fingerprint;
  for (const ShardedCorpus* each : context_.corpora) {
    state.corpus_digests.push_back(each->info().digest);
  }
  state.corpora = context_.folders;
  state.step = step_;
  state.tokens = tokens_;
  state.skipped_steps = skipped_steps_;
  state.seconds = budget_.used(now_seconds());
  state.step_seconds = budget_.step_seconds();
  if (cooldown_by_time_) state.cooldown = cooldown_;
  if (average_) state.average_updates = average_->updates();
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
  if (average_) {
    for (const auto& [name, tensor] : average_->tensors()) hash = hash * 31 + bit_hash(tensor);
  }
  const std::string first = context_.communicator.broadcast(hex_text(hash), 0);
  const bool equal = context_.communicator.all_agree(first == hex_text(hash));
  TORCH_CHECK(equal, "the ranks' parameters differ at step ", step_,
              "; memory or network corrupted a replica, nothing was saved");
}

void Trainer::save() {
  require_equal_replicas();
  RunState state = current_state();
  Communicator& communicator = context_.communicator;
  for (const Ledger& ledger : ledgers_) state.epochs.push_back(ledger.totals(step_, communicator));
  state.masks_hash = communicator.sum(masks_hash_);
  const double started = now_seconds();
  on_rank_zero(communicator, [&] {
    Checkpoint checkpoint;
    checkpoint.step = step_;
    checkpoint.files["model"] = model_tensors();
    checkpoint.files["optimizer"] = optimizer_->state();
    if (average_) checkpoint.files["ema"] = average_->tensors();
    checkpoint.state_json = to_json(state);
    const auto folder = store_->save(checkpoint);
    context_.console.line("step " + std::to_string(step_) + "  saved " + folder.string());
  });
  saved_step_ = step_;
  log_.leave_out(now_seconds() - started);
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
  const auto average_file = checkpoint.files.find("ema");
  if (average_ && average_file != checkpoint.files.end()) {
    const AverageInPlace in_place(*average_);
    load_parameters(*model_, average_file->second);
  }
}

// After the weights are the same everywhere; what rank 0 restored goes to the others.
void Trainer::restore_average(bool restored, std::int64_t updates) {
  if (!average_) return;
  Communicator& communicator = context_.communicator;
  if (!communicator.any(restored)) {
    average_->restart();
    return;
  }
  average_->set_updates(std::stoll(communicator.broadcast(std::to_string(updates), 0)));
  const torch::NoGradGuard no_gradients;
  for (const auto& [name, tensor] : average_->tensors()) communicator.broadcast(tensor, 0)->wait();
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
  std::vector<std::map<std::uint64_t, EpochCount>> epochs(context_.corpora.size());
  bool has_average = false;
  std::int64_t average_updates = 0;
  std::string cooldown;  // "BEGIN STEPS"
  on_rank_zero(communicator, [&] {
    store_ = std::make_unique<CheckpointStore>(
        context_.folder.checkpoints(),
        CheckpointStore::Options{static_cast<int>(context_.config.train.keep_checkpoints)});
    const auto checkpoint = store_->load_newest([&](std::int64_t step, const std::string& reason) {
      context_.console.notice("checkpoint of step " + std::to_string(step) +
                              " is not used: " + reason);
    });
    if (!checkpoint && context_.initial != nullptr) {
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
      budget_.take_up(saved.seconds, saved.step_seconds);
      if (saved.cooldown) {
        cooldown =
            std::to_string(saved.cooldown->begin) + " " + std::to_string(saved.cooldown->steps);
      }
      has_average = checkpoint->files.count("ema") > 0;
      average_updates = saved.average_updates;
      resumed_ = true;
      const std::string differences = bit_differences(saved, current);
      context_.console.line("resuming at step " + std::to_string(step_));
      if (average_ && !has_average) {
        context_.console.notice("the checkpoint has no average of weights; it begins here");
      } else if (!average_ && has_average) {
        context_.console.notice("the average of weights is given up, as train.ema-decay is 0");
      }
      if (!differences.empty()) {
        context_.console.notice("the continued run is equal up to rounding, not bit for bit: " +
                                differences);
      }
    }
    log_.open(context_.folder.metrics(), step_);
    order_->keep_plans(PlanCache(context_.folder.plans()));
  });
  step_ = std::stoll(communicator.broadcast(std::to_string(step_), 0));
  tokens_ = std::stoll(communicator.broadcast(std::to_string(tokens_), 0));
  skipped_steps_ = std::stoll(communicator.broadcast(std::to_string(skipped_steps_), 0));
  resumed_ = communicator.any(resumed_);
  if (resumed_) saved_step_ = step_;
  broadcast_tensors();
  restore_average(has_average, average_updates);
  cooldown = communicator.broadcast(cooldown, 0);
  if (!cooldown.empty()) {
    const std::size_t space = cooldown.find(' ');
    cool_down({std::stoll(cooldown.substr(0, space)), std::stoll(cooldown.substr(space))});
  }
  for (std::size_t corpus = 0; corpus < epochs.size(); ++corpus) {
    ledgers_.emplace_back(*order_, corpus).restore(epochs[corpus]);
  }
}

}  // namespace tupelo
