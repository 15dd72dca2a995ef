// A trained model, read from a run's newest checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoints/checkpoint_store.h"
#include "launcher/run_config.h"
#include "launcher/run_state.h"
#include "model/roberta.h"

namespace tupelo {

struct SavedModel {
  RunState state;
  RunConfig config;
  std::string folder;  // of the checkpoint
  std::shared_ptr<RobertaForMaskedLm> model;
};

// A run's folder and the step of one of its checkpoints; 0: the newest that verifies.
struct CheckpointPlace {
  std::string run;
  std::int64_t step = 0;
};

// "RUN", or "RUN/checkpoints/step-000000100".
CheckpointPlace checkpoint_place(const std::string& path);

// Hears of newer checkpoints that did not verify, so that an older one is used.
using PassedOver = std::function<void(const std::string& sentence)>;

// Throws std::invalid_argument when `place` is no run or has no checkpoint of that step,
// CorruptCheckpoint when none verifies, std::system_error when it cannot be read.
Checkpoint load_checkpoint(const CheckpointPlace& place, const PassedOver& passed_over);

// The folder of that checkpoint, once its step is known.
std::string checkpoint_folder(const CheckpointPlace& place, std::int64_t step);

// Which weights of a checkpoint: those of its last step, or their average (train.ema-decay).
std::vector<std::string> weights_names();  // "last", "ema"
// Moves them out of `checkpoint`, which is that of folder `where`. Throws std::invalid_argument
// when it holds no average, CorruptCheckpoint when it holds no model.
NamedTensors take_weights(Checkpoint& checkpoint, const std::string& weights,
                          const std::string& where);

// `path` as in checkpoint_place(), whose step gives way to `step` unless that is 0. Throws as
// load_checkpoint() does.
SavedModel load_saved_model(const std::string& path, std::int64_t step, const std::string& weights,
                            const PassedOver& passed_over);

}  // namespace tupelo
