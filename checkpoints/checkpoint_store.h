// Durable state of a run: a folder of checkpoints, each of which exists entirely or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoints/safetensors.h"

namespace tupelo {

struct Checkpoint {
  std::int64_t step = 0;
  // File stem (a-z 0-9 _ -) -> tensors; "model" -> step-000000100/model.safetensors. Loaded tensors
  // come in the order of their names, with storage of their own.
  std::map<std::string, NamedTensors> files;
  // Small state of the run as a JSON object (text), stored as state.json; empty is saved as {}.
  std::string state_json;
};

// Layout, commit protocol and manifest are in checkpoints/FORMAT.md. One process saves (rank 0 of a
// run) while others may read; nothing here communicates. Not thread-safe.
class CheckpointStore {
 public:
  struct Options {
    // How many newest verified checkpoints survive pruning; at least 1.
    int keep = 2;
  };

  // Creates `folder` when missing and removes leftovers of an interrupted save, unless a save is
  // running. Throws std::system_error.
  CheckpointStore(std::filesystem::path folder, Options options);

  // Commit protocol: temporary folder, every file written and fsynced, manifest with SHA-256 of
  // each, fsync, rename, fsync of the parent, verification by reading back, then pruning. A
  // checkpoint of the same step is replaced. Returns the folder of the checkpoint. Throws
  // std::system_error (ENOSPC; EIO when the disk gives back other bytes; EWOULDBLOCK when another
  // process has been saving for 2 s) or std::invalid_argument (file stem, tensor, state_json),
  // after which no trace of the new checkpoint is left and every older one is untouched.
  std::filesystem::path save(const Checkpoint& checkpoint);

  // Steps with a folder that carries a checkpoint's name, newest first; nothing is verified.
  std::vector<std::int64_t> steps() const;

  // The folder of a step, whether it exists or not.
  std::filesystem::path folder_of(std::int64_t step) const;

  // Verifies every file against the manifest and reads it. Throws CorruptCheckpoint, or
  // std::system_error when there is no such checkpoint or it cannot be read.
  Checkpoint load(std::int64_t step) const;

  // The newest checkpoint that verifies. Each newer one that does not is reported to `rejected`
  // with the reason. Empty when the folder holds no checkpoint at all; CorruptCheckpoint when it
  // holds some but none verifies.
  std::optional<Checkpoint> load_newest(
      const std::function<void(std::int64_t step, const std::string& reason)>& rejected) const;

 private:
  void prune(std::int64_t just_saved);
  bool verifies(std::int64_t step);
  void remove(std::int64_t step);

  std::filesystem::path folder_;
  Options options_;
  // Steps that this object has seen verify, so that pruning reads nothing twice.
  std::set<std::int64_t> verified_;
};

}  // namespace tupelo
