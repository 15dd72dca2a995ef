// A trained model, read from a run's newest checkpoint.
#pragma once

#include <memory>
#include <string>

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

// `run` is a run's folder. `step` 0 means the newest checkpoint that verifies. Throws
// CorruptCheckpoint when there is none, std::system_error when it cannot be read.
SavedModel load_saved_model(const std::string& run, std::int64_t step);

}  // namespace tupelo
