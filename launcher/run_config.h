// Everything that can be set for a training run, and where each value came from.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/batch_stream.h"
#include "model/roberta.h"
#include "optim/loss_scaler.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace tupelo {

struct TrainOptions {
  std::int64_t steps = 1000;
  std::int64_t log_every = 10;        // steps
  std::int64_t validate_every = 200;  // steps; 0 = never
  std::int64_t validate_rows = 1024;  // held-out rows per validation, at most
  std::int64_t probe_every = 0;       // steps; 0 = never
  std::int64_t save_every = 500;      // steps; 0 = only at the end
  std::int64_t keep_checkpoints = 2;
  std::int64_t threads = 0;  // computing threads per rank; 0 = cores of the host / ranks on it
  std::int64_t max_bad_shards = 0;  // which the run goes on without, of all corpora
  std::int64_t timeout_seconds = 300;
  std::int64_t bucket_bytes = 4 << 20;
  std::string device = "auto";       // auto | cpu | cuda
  std::string collectives = "auto";  // auto | messages | shared | hierarchical
  bool overlap = true;
  bool deterministic = false;  // kernels on a device: require_determinism()
  bool cuda_graphs = false;    // RobertaForMaskedLm::record_layers()
  std::string max_time = "0";  // training time of the whole run, parse_time_span(); 0 = no limit
  double ema_decay = 0;        // of the average of the weights; 0 = there is none
  // What the model computes in: fp32 | bf16 | fp16. The optimizer works in float32 anyhow.
  std::string precision = "fp32";
  std::string reduce_precision = "fp32";  // in which gradients travel: fp32 | bf16
  std::string shard_optimizer = "none";   // over which ranks: none | node | world
  LossScalerOptions loss_scale;           // of fp16
};

struct UpdateOptions {
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  std::string warmup = "6%";  // of train.steps, or a number of steps
  // Of what an optimizer of matrices leaves to AdamW: "auto", as the schedule's peak, or a number.
  std::string adamw_learning_rate = "auto";
  std::string lr_scaling = "none";      // none | linear | sqrt in the global batch
  std::int64_t lr_reference_batch = 0;  // whose rates are given; 0 = not said
  std::string decay_steps = "10%";      // of schedule wsd: of train.steps, or a number of steps
  std::string decay_shape = "1-sqrt";   // of wsd and of the cool-down: one of decay_shapes()
  std::string cooldown = "0";           // at the end of the run, as decay_steps; 0 = none
  double layer_decay = 1.0;             // learning rate of a layer, relative to the one above
  double weight_decay = 0.01;
  double clip_norm = 1.0;                       // 0 = do not clip
  std::string position_lr_multiplier = "auto";  // or a number for all position parameters
  double position_weight_decay = 0.01;
  // First steps in which position parameters stand still: "100", or in epochs, "2e" or "0.5
  // epochs".
  std::string position_frozen_steps = "0";
  // update | freeze (for the whole run) | truncate (as update, after --extend to fewer positions)
  std::string positions = "update";
};

struct ObjectiveOptions {
  // Of the sentence-order loss beside the masked-LM loss. Above 0 the model has the head for it and
  // rows are pairs: setting it sets these too.
  double sop_weight = 0;
};

struct RunConfig {
  ModelOptions model;
  DataOptions data;
  ObjectiveOptions objective;
  TrainOptions train;
  UpdateOptions optim;
};

// One name that can be set. Names are "section.key"; in a configuration file "key" under [section].
struct ConfigEntry {
  std::string name;
  std::string alias;  // a second, shorter name on the command line; may be empty
  std::string help;
  // Throws std::invalid_argument that says what is valid, without naming the entry.
  std::function<void(RunConfig&, const std::string&)> set;
  std::function<std::string(const RunConfig&)> get;
};

const std::vector<ConfigEntry>& config_entries();

// A configuration whose every value knows its origin ("default", "file:12", "environment", ...).
class ConfigBuilder {
 public:
  // Later calls win; apply the sources in order of precedence, lowest first. All throw
  // std::invalid_argument with one sentence naming the source, the key and what is valid.
  void set(const std::string& name, const std::string& value, const std::string& origin);
  // How a sentence about setting `name` begins: "run.ini:12: train.steps".
  std::string place_of(const std::string& name) const;
  void apply_file(const std::string& file);
  // `text` in the form of a configuration file; `name` stands for it in messages.
  void apply_text(const std::string& text, const std::string& name);
  // $TUPELO_TRAIN_STEPS for train.steps; a variable that looks like a setting must be one.
  void apply_environment();

  const RunConfig& config() const { return config_; }
  RunConfig& config() { return config_; }
  // "[section]\nkey = value   # origin": a valid configuration file.
  std::string to_ini(bool with_origins) const;
  const std::map<std::string, std::string>& origins() const { return origins_; }

 private:
  RunConfig config_;
  std::map<std::string, std::string> origins_;
};

// The schedule over train.steps steps (launcher/update_settings.h). Throws std::invalid_argument.
LearningRateSchedule learning_rate_schedule(const RunConfig& config);

// First steps in which position parameters stand still; all of them for "freeze". `epochs_after`
// says, without falling, how many epochs a number of steps takes. Throws std::invalid_argument.
std::int64_t frozen_position_steps(const RunConfig& config,
                                   const std::function<double(std::int64_t)>& epochs_after);

// Checks values against each other, and that none is set which would have no effect beside the
// others. Throws std::invalid_argument that names the keys and where they were set.
void validate(const ConfigBuilder& builder);
// The same of [model] alone.
void validate_model(const ConfigBuilder& builder);

}  // namespace tupelo
