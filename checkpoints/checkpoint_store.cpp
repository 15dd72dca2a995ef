#include "checkpoints/checkpoint_store.h"

#include <c10/util/Exception.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <stdexcept>
#include <system_error>

#include "checkpoints/checkpoint_folder.h"
#include "checkpoints/durable_file.h"
#include "checkpoints/folder_lock.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLockPatience{2000};

// Hidden folders of a store: "<purpose><checkpoint name>-<random>". None can be taken for a
// checkpoint.
constexpr char kPartial[] = ".partial-";    // being written
constexpr char kReplaced[] = ".replaced-";  // the older checkpoint of a step that is saved again
constexpr char kPruned[] = ".pruned-";      // being removed

std::string name_of(std::int64_t step) {
  char name[32];
  std::snprintf(name, sizeof(name), "step-%09lld", static_cast<long long>(step));
  return name;
}

// The step whose checkpoint is called `name`, or -1.
std::int64_t step_of(const std::string& name) {
  constexpr std::string_view kPrefix = "step-";
  std::int64_t step = -1;
  if (name.size() <= kPrefix.size()) return -1;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  return step >= 0 && name_of(step) == name ? step : -1;
}

fs::path hidden_path(const fs::path& folder, const char* purpose, std::int64_t step) {
  return folder / (purpose + name_of(step) + "-" + random_suffix());
}

// The step of a hidden folder for `purpose`, or -1.
std::int64_t step_of_hidden(const std::string& name, const std::string& purpose) {
  const std::size_t suffix_size = 1 + random_suffix().size();
  if (name.rfind(purpose, 0) != 0 || name.size() <= purpose.size() + suffix_size) return -1;
  return step_of(name.substr(purpose.size(), name.size() - purpose.size() - suffix_size));
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

bool is_leftover(const std::string& name) {
  return step_of_hidden(name, kPartial) >= 0 || step_of_hidden(name, kReplaced) >= 0 ||
         step_of_hidden(name, kPruned) >= 0;
}

std::vector<fs::path> leftovers_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (is_leftover(entry.path().filename().string())) found.push_back(entry.path());
  }
  return found;
}

// What cannot be removed is in nobody's way: a later save meets the true obstacle and reports it.
void clear_leftovers(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::path& leftover : leftovers_in(folder)) {
    const std::int64_t replaced = step_of_hidden(leftover.filename().string(), kReplaced);
    if (replaced >= 0 && !is_folder(folder / name_of(replaced))) {
      // The save stopped between the two renames: the older checkpoint is still the valid one.
      fs::rename(leftover, folder / name_of(replaced), ignored);
    } else {
      fs::remove_all(leftover, ignored);
    }
  }
}

void make_private_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0) throw_system_error("create", path);
}

// A checkpoint on its way into the store. Unless kept, it disappears together with this object, and
// the checkpoint whose name it took returns.
class PendingCheckpoint {
 public:
  PendingCheckpoint(fs::path folder, std::int64_t step)
      : folder_(std::move(folder)),
        step_(step),
        target_(folder_ / name_of(step)),
        place_(hidden_path(folder_, kPartial, step)) {
    make_private_folder(place_);
  }
  PendingCheckpoint(const PendingCheckpoint&) = delete;
  PendingCheckpoint& operator=(const PendingCheckpoint&) = delete;

  ~PendingCheckpoint() {
    std::error_code ignored;
    if (!kept_ && place_ == target_) {
      const fs::path hidden = hidden_path(folder_, kPartial, step_);
      fs::rename(place_, hidden, ignored);
      place_ = hidden;
    }
    if (!kept_ && !replaced_.empty()) {
      fs::rename(replaced_, target_, ignored);
      replaced_.clear();
    }
    if (!kept_) fs::remove_all(place_, ignored);
    if (!replaced_.empty()) fs::remove_all(replaced_, ignored);
  }

  const fs::path& place() const { return place_; }

  void publish() {
    if (is_folder(target_)) {
      const fs::path aside = hidden_path(folder_, kReplaced, step_);
      rename_path(target_, aside);
      replaced_ = aside;
    }
    rename_path(place_, target_);
    place_ = target_;
    sync_folder(folder_);
  }

  void keep() { kept_ = true; }

 private:
  fs::path folder_;
  std::int64_t step_;
  fs::path target_;
  fs::path place_;
  fs::path replaced_;
  bool kept_ = false;
};

void verify_as_written(const fs::path& folder, std::int64_t step) {
  try {
    verify_checkpoint_folder(folder, step);
  } catch (const CorruptCheckpoint& error) {
    throw std::system_error(
        EIO, std::generic_category(),
        std::string("the disk does not give back what was written: ") + error.what());
  }
}

// Errors that speak of the disk or of a checkpoint pruned meanwhile, not of what we may do.
bool is_unreadable(const std::system_error& error) {
  const int code = error.code().value();
  return code == EIO || code == ENOENT || code == ESTALE;
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder, Options options)
    : folder_(std::move(folder)), options_(options) {
  if (options_.keep < 1) {
    throw std::invalid_argument("a store keeps at least 1 checkpoint, not " +
                                std::to_string(options_.keep));
  }
  fs::create_directories(folder_);
  if (leftovers_in(folder_).empty()) return;
  const FolderLock lock(folder_, std::chrono::milliseconds(0));
  if (lock.state() == FolderLock::State::kHeld) clear_leftovers(folder_);
}

fs::path CheckpointStore::save(const Checkpoint& checkpoint) {
  TORCH_CHECK(checkpoint.step >= 0, "a checkpoint's step is negative: ", checkpoint.step);
  check_saveable(checkpoint);
  const FolderLock lock(folder_, kLockPatience);
  if (lock.state() == FolderLock::State::kBusy) {
    throw std::system_error(EWOULDBLOCK, std::generic_category(),
                            "another process is saving into '" + folder_.string() + "'");
  }
  clear_leftovers(folder_);
  verified_.erase(checkpoint.step);
  PendingCheckpoint pending(folder_, checkpoint.step);
  write_checkpoint_folder(pending.place(), checkpoint);
  pending.publish();
  verify_as_written(pending.place(), checkpoint.step);
  pending.keep();
  verified_.insert(checkpoint.step);
  prune(checkpoint.step);
  return folder_of(checkpoint.step);
}

// Everything older than the `keep` newest that verify. Damaged ones among these stay: they are
// evidence, and they are not counted.
void CheckpointStore::prune(std::int64_t just_saved) {
  int survivors = 0;
  for (const std::int64_t step : steps()) {
    if (survivors < options_.keep) {
      survivors += verifies(step) ? 1 : 0;
    } else if (step != just_saved) {
      remove(step);
    }
  }
}

bool CheckpointStore::verifies(std::int64_t step) {
  if (verified_.count(step) > 0) return true;
  try {
    verify_checkpoint_folder(folder_of(step), step);
  } catch (const CorruptCheckpoint&) {
    return false;
  } catch (const std::system_error&) {
    return false;
  }
  verified_.insert(step);
  return true;
}

// The new checkpoint is safe already, so what cannot be removed now is left to the next save.
void CheckpointStore::remove(std::int64_t step) {
  std::error_code error;
  const fs::path hidden = hidden_path(folder_, kPruned, step);
  fs::rename(folder_of(step), hidden, error);
  if (error) return;
  verified_.erase(step);
  fs::remove_all(hidden, error);
}

std::vector<std::int64_t> CheckpointStore::steps() const {
  std::vector<std::int64_t> found;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::int64_t step = step_of(entry.path().filename().string());
    if (step >= 0 && is_folder(entry.path())) found.push_back(step);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

fs::path CheckpointStore::folder_of(std::int64_t step) const { return folder_ / name_of(step); }

Checkpoint CheckpointStore::load(std::int64_t step) const {
  return read_checkpoint_folder(folder_of(step), step);
}

std::optional<Checkpoint> CheckpointStore::load_newest(
    const std::function<void(std::int64_t step, const std::string& reason)>& rejected) const {
  const std::vector<std::int64_t> candidates = steps();
  std::string first_reason;
  const auto reject = [&](std::int64_t step, const std::string& reason) {
    if (first_reason.empty()) first_reason = reason;
    if (rejected) rejected(step, reason);
  };
  for (const std::int64_t step : candidates) {
    try {
      return load(step);
    } catch (const CorruptCheckpoint& error) {
      reject(step, error.what());
    } catch (const std::system_error& error) {
      if (!is_unreadable(error)) throw;
      reject(step, error.what());
    }
  }
  if (candidates.empty()) return std::nullopt;
  throw CorruptCheckpoint("none of the " + std::to_string(candidates.size()) + " checkpoints in '" +
                          folder_.string() + "' verifies; the newest: " + first_reason);
}

}  // namespace tupelo
