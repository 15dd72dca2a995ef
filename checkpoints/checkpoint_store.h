// Durable state of a run: a folder of checkpoints, each of which exists entirely or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/safetensors.h"

namespace tupelo {

struct Checkpoint {
  std::int64_t step = 0;
  // File stem -> tensors; "model" -> step-00000100/model.safetensors.
  std::map<std::string, NamedTensors> files;
  // Small state of the run as a JSON object (text), stored as state.json.
  std::string state_json;
};

// Layout, commit protocol and manifest are in checkpoints/FORMAT.md. All calls are for one process
// at a time (rank 0 of a run); nothing here communicates.
class CheckpointStore {
 public:
  struct Options {
    // How many newest verified checkpoints survive pruning; at least 1.
    int keep = 2;
  };

  // Creates `folder` when missing and removes leftovers of an interrupted save.
  // Throws std::system_error.
  CheckpointStore(std::filesystem::path folder, Options options);

  // Commit protocol: temporary folder, every file written and fsynced, manifest with SHA-256 of
  // each, fsync, rename, fsync of the parent, verification by reading back, then pruning. Returns
  // the folder of the checkpoint. Throws std::system_error (for instance ENOSPC), after which no
  // trace of the new checkpoint is left and every older one is untouched.
  std::filesystem::path save(const Checkpoint& checkpoint);

  // Steps with a folder that carries a checkpoint's name, newest first; nothing is verified.
  std::vector<std::int64_t> steps() const;

  // The folder of a step, whether it exists or not.
  std::filesystem::path folder_of(std::int64_t step) const;

  // Verifies every file against the manifest and reads it. Throws CorruptCheckpoint or
  // std::system_error.
  Checkpoint load(std::int64_t step) const;

  // The newest checkpoint that verifies. Each newer one that does not is reported to `rejected`
  // with the reason. Empty when the folder holds no checkpoint at all; CorruptCheckpoint when it
  // holds some but none verifies.
  std::optional<Checkpoint> load_newest(
      const std::function<void(std::int64_t step, const std::string& reason)>& rejected) const;

 private:
  std::filesystem::path folder_;
  Options options_;
};

}  // namespace tupelo
