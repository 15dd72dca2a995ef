// One training run on one rank: the loop, and what it keeps.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/checkpoint_store.h"
#include "data/batch_stream.h"
#include "launcher/exit_codes.h"
#include "launcher/ledger.h"
#include "launcher/run_config.h"
#include "launcher/run_folder.h"
#include "launcher/run_state.h"
#include "launcher/shard_groups.h"
#include "launcher/time_budget.h"
#include "launcher/trained_parameters.h"
#include "launcher/training_log.h"
#include "launcher/training_rows.h"
#include "launcher/update_settings.h"
#include "model/roberta.h"
#include "optim/loss_scaler.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "optim/weight_average.h"

namespace tupelo {

struct BatchLosses;
class Communicator;
class Console;
class InitialWeights;
class StopSignal;

// What a run goes on from.
struct Resumption {
  std::vector<std::int64_t> steps;       // rank 0: of all checkpoints that were there
  std::optional<Checkpoint> checkpoint;  // rank 0: the newest that verifies
  std::optional<RunState> state;         // its state, on all ranks
};

// What a trainer works on; everything outlives it.
struct TrainerContext {
  RunConfig config;  // resolved and validated
  // Of the mixture; their held-out halves; their folders.
  std::vector<const ShardedCorpus*> corpora, held_out;
  std::vector<std::string> folders;
  TrainingRows& rows;  // of the corpora; arranged
  torch::Device device;
  int threads;
  Communicator& communicator;  // of all ranks
  ShardGroups shard_groups;
  RunFolder folder;
  const StopSignal& stop;
  Console& console;
  Resumption resumption = {};
  InitialWeights* initial = nullptr;  // of a run that has no checkpoint yet
};

// All ranks construct one and call restore(), then train(), together. Errors are either met by all
// ranks alike (AgreedError) or, when only this rank met them, must end the job.
class Trainer {
 public:
  // With the initial weights, else fresh ones. Touches no file. Throws std::invalid_argument for
  // settings that cannot be.
  explicit Trainer(TrainerContext context);

  // Takes up the checkpoint, when there is one; makes all ranks the same.
  void restore();
  // Whether all steps are made.
  bool finished() const { return step_ >= last_step_; }
  // Whether there was a checkpoint.
  bool resumed() const { return resumed_; }
  // "recompute none": what backward computes again, and how that was chosen.
  const std::string& recompute_text() const { return recompute_text_; }
  // "memory parameters 1.2 MB ...": what this rank holds, and how much of it other ranks as well.
  std::string memory_text() const;
  // Runs to the last step, until a signal, or until train.max-time is used; saves at the end in any
  // case.
  ExitCode train();

 private:
  StepRecord train_step();
  void record(StepRecord step);
  void count_waits(StepRecord& step);
  void validate_now();
  void probe_now();
  void save();

  bool has_time();
  void cool_down(const CooldownSpan& span);
  bool is_cooling_down() const { return cooldown_.steps > 0 && step_ >= cooldown_.begin; }
  // What a step's losses are divided by, summed over ranks.
  struct Counts {
    double masked = 0, tokens = 0, pairs = 0;
  };
  struct Upcoming {
    std::vector<Batch> micro_batches;
    Counts counts;
    bool stop = false;  // a rank was told to
    // Whether a rank's batches fail at bad shards, and those of this rank; then there is no step.
    bool fails = false;
    std::vector<std::exception_ptr> bad_shards = {};
  };
  Upcoming& upcoming();
  void use(const std::vector<Batch>& micro_batches);
  BatchLosses forward(const Batch& batch);
  torch::Tensor accumulate(std::vector<Batch>& micro_batches, const Counts& counts);
  void clip(StepRecord& step);
  void read_losses(const torch::Tensor& sums, const Counts& counts, StepRecord& step) const;
  bool update(const StepRecord& step);
  void skip(const StepRecord& step);
  void close_epochs();
  void log_epochs(std::size_t corpus, const std::vector<Ledger::ClosedEpoch>& closed);
  void begin_rows(const std::vector<EpochCounts>& epochs);
  void open_batches();
  void leave_out_bad_shards();
  void change_rows();
  void tell_excluded_shards();
  RunState current_state() const;
  void check_tensors(const Checkpoint& checkpoint);
  void open_store();
  void check_checkpoint(const Checkpoint& checkpoint);
  std::vector<EpochCounts> unfinished_epochs();
  void cut_epochs(std::size_t corpus, EpochCounts& epochs);
  void take_up_tensors(const std::optional<Checkpoint>& checkpoint);
  void take_up_state(const RunState& saved);
  std::vector<Evaluation> evaluations();
  void require_equal_replicas();
  void swap_average();
  RunProgress progress() const { return {step_, tokens_}; }
  bool is_logged() const { return due(context_.config.train.log_every) || step_ == last_step_; }
  bool has_trained() const { return skipped_steps_ < step_; }
  bool due(std::int64_t every) const { return every > 0 && step_ % every == 0; }

  TrainerContext context_;
  TrainingLog log_;
  std::shared_ptr<RobertaForMaskedLm> model_;
  std::string recompute_text_;
  std::unique_ptr<TrainedParameters> trained_;
  std::vector<torch::Tensor> masters_, position_masters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<LossScaler> scaler_;
  bool gradients_overflow_ = false;  // in the last step that was skipped
  // What a run keeps of a loss scale while it is not in float16.
  double kept_scale_ = 0;
  std::int64_t kept_scale_steps_ = 0;
  LearningRateSchedule schedule_;
  CooldownSpan cooldown_;
  bool cooldown_by_time_ = false;  // has train.max-time made it begin
  TimeBudget budget_;
  std::optional<WeightAverage> average_;
  std::unique_ptr<CheckpointStore> store_;  // rank 0
  std::shared_ptr<const SampleOrder> order_;
  std::unique_ptr<BatchStream> batches_;
  std::optional<Upcoming> upcoming_;
  BatchStream::Waits recorded_waits_;
  std::vector<Ledger> ledgers_;  // of each corpus
  std::int64_t frozen_position_steps_;
  std::size_t told_exclusions_ = 0;         // of the shards that are left out
  std::vector<std::uint64_t> rows_before_;  // of an epoch of each corpus, before the last of them

  bool resumed_ = false;
  std::int64_t step_ = 0;
  std::int64_t last_step_;
  std::int64_t saved_step_ = -1;
  std::int64_t tokens_ = 0;
  std::int64_t skipped_steps_ = 0;
  std::int64_t peak_memory_ = 0;  // bytes, of any rank
  int skipped_in_a_row_ = 0;
  std::uint64_t masks_hash_ = 0;  // this rank's share; rank 0 also carries what a checkpoint held
};

}  // namespace tupelo
