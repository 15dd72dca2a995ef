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
#include "launcher/profiler_range.h"
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
  state.loss_scale = scaler_ ? scaler_->scale() : kept_scale_;
  state.loss_scale_steps = scaler_ ? scaler_->finite_steps() : kept_scale_steps_;
  state.frozen_position_steps = frozen_position_steps_;
  state.world_size = context_.communicator.world_size();
  state.threads = context_.threads;
  state.torch_version = TORCH_VERSION;
  state.cpu_capability = at::get_cpu_capability();
  return state;
}

void Trainer::require_equal_replicas() {
  trained_->wait();
  std::uint64_t hash = 0;
  for (const torch::Tensor& tensor : model_->parameters()) hash = hash * 31 + bit_hash(tensor);
  if (average_ && trained_->exchange() == nullptr) {
    for (const auto& [name, tensor] : average_->tensors()) hash = hash * 31 + bit_hash(tensor);
  }
  const std::string first = context_.communicator.broadcast(hex_text(hash), 0);
  const bool equal = context_.communicator.all_agree(first == hex_text(hash));
  TORCH_CHECK(equal, "the ranks' parameters differ at step ", step_,
              "; memory or network corrupted a replica, nothing was saved");
}

// What was used of the epochs that go on after this step; it must be what was due.
std::vector<EpochCounts> Trainer::unfinished_epochs() {
  std::vector<EpochCounts> epochs;
  for (std::size_t corpus = 0; corpus < ledgers_.size(); ++corpus) {
    epochs.push_back(ledgers_[corpus].totals(step_, context_.communicator));
    for (const auto& [epoch, count] : epochs.back()) {
      const std::uint64_t due = order_->epoch_after_steps(corpus, epoch, step_).consumed;
      TORCH_CHECK(count.rows == due, "epoch ", epoch, " of corpus ", corpus, " used ", count.rows,
                  " rows until step ", step_, " instead of ", due);
    }
  }
  return epochs;
}

void Trainer::save() {
  const ProfilerRange range("save");
  require_equal_replicas();
  RunState state = current_state();
  Communicator& communicator = context_.communicator;
  state.excluded_shards = context_.rows.excluded();
  state.order_start = order_->start();
  state.next_order = order_->start_after(step_);
  state.epochs = unfinished_epochs();
  state.masks_hash = communicator.sum(masks_hash_);
  const double started = now_seconds();
  Checkpoint checkpoint;
  checkpoint.step = step_;
  checkpoint.files["model"] = trained_->gather_parameters();
  checkpoint.files["optimizer"] = trained_->gather(optimizer_->state());
  if (average_) checkpoint.files["ema"] = trained_->gather(average_->tensors());
  on_rank_zero(communicator, [&] {
    checkpoint.state_json = to_json(state);
    const auto folder = store_->save(checkpoint);
    context_.console.line("step " + std::to_string(step_) + "  saved " + folder.string());
  });
  saved_step_ = step_;
  log_.leave_out(now_seconds() - started);
}

void Trainer::check_tensors(const Checkpoint& checkpoint) {
  const auto model_file = checkpoint.files.find("model");
  const auto optimizer_file = checkpoint.files.find("optimizer");
  if (model_file == checkpoint.files.end() || optimizer_file == checkpoint.files.end()) {
    throw CorruptCheckpoint("checkpoint of step " + std::to_string(checkpoint.step) +
                            " lacks its model or optimizer file");
  }
  trained_->check_whole("parameter", model_file->second, trained_->master_tensors());
  trained_->check_whole("optimizer state", optimizer_file->second, optimizer_->state());
  const auto average_file = checkpoint.files.find("ema");
  if (average_ && average_file != checkpoint.files.end()) {
    trained_->check_whole("average", average_file->second, average_->tensors());
  }
}

// Rank 0 only.
void Trainer::open_store() {
  store_ = std::make_unique<CheckpointStore>(
      context_.folder.checkpoints(),
      CheckpointStore::Options{static_cast<int>(context_.config.train.keep_checkpoints)});
  // The checkpoint was read before the folder was this process's own.
  if (store_->steps() != context_.resumption.steps) {
    throw std::invalid_argument("run folder " + context_.folder.root().string() +
                                " got another checkpoint meanwhile, from another process; start "
                                "again");
  }
}

// That it is of this run; tells how it goes on. Rank 0 only.
void Trainer::check_checkpoint(const Checkpoint& checkpoint) {
  const RunState &saved = *context_.resumption.state, current = current_state();
  require_same_run(saved, current);
  check_tensors(checkpoint);
  context_.console.line("resuming at step " + std::to_string(saved.step));
  const bool has_average = checkpoint.files.count("ema") > 0;
  if (average_ && !has_average) {
    context_.console.notice("the checkpoint has no average of weights; it begins here");
  } else if (!average_ && has_average) {
    context_.console.notice("the average of weights is given up, as train.ema-decay is 0");
  }
  const double scale = context_.config.train.loss_scale.initial;
  if (scaler_ && saved.loss_scale > 0 && config_of(saved).train.loss_scale.initial != scale) {
    context_.console.notice("train.loss-scale " + number_text(scale) +
                            " is where a run begins; this one goes on at " +
                            number_text(saved.loss_scale));
  }
  const std::string differences = bit_differences(saved, current);
  if (!differences.empty()) {
    context_.console.notice("the continued run is equal up to rounding, not bit for bit: " +
                            differences);
  }
}

// What rank 0's checkpoint holds, if there is one, goes to all ranks.
void Trainer::take_up_tensors(const std::optional<Checkpoint>& checkpoint) {
  const auto file = [&](const char* name) {
    return checkpoint ? checkpoint->files.at(name) : NamedTensors();
  };
  if (!resumed_) {
    trained_->scatter_initial();
  } else {
    trained_->scatter_parameters(file("model"));
    trained_->scatter(file("optimizer"), optimizer_->state());
  }
  if (!average_) return;
  if (context_.communicator.any(checkpoint && checkpoint->files.count("ema") > 0)) {
    trained_->scatter(file("ema"), average_->tensors());
  } else {
    average_->restart();
  }
}

void Trainer::take_up_state(const RunState& saved) {
  step_ = saved_step_ = saved.step;
  tokens_ = saved.tokens;
  skipped_steps_ = saved.skipped_steps;
  budget_.take_up(saved.seconds, saved.step_seconds);
  if (average_) average_->set_updates(saved.average_updates);
  kept_scale_ = saved.loss_scale;
  kept_scale_steps_ = saved.loss_scale_steps;
  if (scaler_ && saved.loss_scale > 0) scaler_->restore(saved.loss_scale, saved.loss_scale_steps);
  if (saved.cooldown) cool_down(*saved.cooldown);
}

void Trainer::restore() {
  Communicator& communicator = context_.communicator;
  const std::optional<Checkpoint> checkpoint = std::move(context_.resumption.checkpoint);
  context_.resumption.checkpoint.reset();
  on_rank_zero(communicator, [&] {
    open_store();
    if (checkpoint) {
      check_checkpoint(*checkpoint);
    } else if (context_.initial != nullptr) {
      context_.console.line("starting from " + context_.initial->summary());
    }
  });
  const std::optional<RunState>& saved = context_.resumption.state;
  resumed_ = saved.has_value();
  take_up_tensors(checkpoint);
  if (saved) take_up_state(*saved);
  std::vector<EpochCounts> epochs(context_.corpora.size());
  on_rank_zero(communicator, [&] {
    // A run that begins, or never saved, has nothing to keep.
    log_.open(context_.folder.metrics(), resumed_ ? step_ : -1);
    if (!saved) return;
    masks_hash_ = saved->masks_hash;  // sums over ranks have these once
    epochs = saved->epochs;
    for (std::size_t corpus = 0; corpus < epochs.size(); ++corpus)
      cut_epochs(corpus, epochs[corpus]);
  });
  begin_rows(epochs);
}

// Takes out those that end with the checkpoint, since an order takes over that begins others: a
// shard turned out bad before the run went on. What they used was compared when it was saved.
void Trainer::cut_epochs(std::size_t corpus, EpochCounts& epochs) {
  const std::uint64_t first = order_->start().epochs.at(corpus);
  for (auto it = epochs.begin(); it != epochs.end() && it->first < first; it = epochs.erase(it)) {
    const auto& [epoch, count] = *it;
    log_.epoch(step_, corpus, {epoch, count.rows, count.hash, /*cut=*/true, /*complete=*/true});
  }
}

}  // namespace tupelo
