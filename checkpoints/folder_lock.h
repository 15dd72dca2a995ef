// One writer per folder.
#pragma once

#include <chrono>
#include <filesystem>

#include "checkpoints/durable_file.h"

namespace tupelo {

// An advisory lock (flock) on a folder; the kernel releases it when its holder dies.
class FolderLock {
 public:
  enum class State {
    kHeld,
    kBusy,         // another holder kept it for all of `patience`
    kUnsupported,  // the file system has no such locks
  };

  // Throws std::system_error when the folder cannot be opened.
  FolderLock(const std::filesystem::path& folder, std::chrono::milliseconds patience);

  State state() const { return state_; }

 private:
  FileDescriptor descriptor_;
  State state_;
};

}  // namespace tupelo
