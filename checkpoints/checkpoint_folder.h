// The files of one checkpoint, in whatever folder they lie.
#pragma once

#include <cstdint>
#include <filesystem>

#include "checkpoints/checkpoint_store.h"

namespace tupelo {

// Throws std::invalid_argument when a file's stem is not of a-z 0-9 _ - or state_json is neither
// empty nor a JSON object.
void check_saveable(const Checkpoint& checkpoint);

// Writes every file and then the manifest into the existing, empty `folder`; content and names are
// durable afterwards. Throws std::system_error, std::invalid_argument.
void write_checkpoint_folder(const std::filesystem::path& folder, const Checkpoint& checkpoint);

// Reads every file and holds it to the manifest, and that to `step`. Throws CorruptCheckpoint, or
// std::system_error when `folder` does not exist or a file cannot be read.
Checkpoint read_checkpoint_folder(const std::filesystem::path& folder, std::int64_t step);

// The same without keeping the content; looks past the kernel's copy of the files, at the disk.
void verify_checkpoint_folder(const std::filesystem::path& folder, std::int64_t step);

}  // namespace tupelo
