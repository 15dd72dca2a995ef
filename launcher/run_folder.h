// The folder of a run: what lies where, and who may write there.
//
//   RUN/config.ini      the resolved configuration; `tupelo train --config RUN/config.ini` repeats
//   it RUN/run.json        corpus, settings and where they come from, versions RUN/metrics.jsonl
//   one object per logged step, validation and epoch RUN/checkpoints/    checkpoints/FORMAT.md
//   RUN/plans/          data/plan_cache.h; may be deleted
//   RUN/lock            held by rank 0 while a run is going on
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tupelo {

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path config() const { return root_ / "config.ini"; }
  std::filesystem::path description() const { return root_ / "run.json"; }
  std::filesystem::path metrics() const { return root_ / "metrics.jsonl"; }
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }
  std::filesystem::path plans() const { return root_ / "plans"; }
  std::filesystem::path lock() const { return root_ / "lock"; }

  // Whether an earlier run left anything that a new one would mix with.
  bool holds_a_run() const;
  // Whether there is a checkpoint to go on from, verified or not.
  bool holds_a_checkpoint() const;
  // Removes what this class names, and nothing else. Throws std::system_error.
  void clear() const;

 private:
  std::filesystem::path root_;
};

// Exclusive use of a run's folder, released when the object or the process ends.
class RunLock {
 public:
  // Throws std::invalid_argument that names the holder when another process has it,
  // std::system_error when the file cannot be made.
  explicit RunLock(const std::filesystem::path& file);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int descriptor_ = -1;
};

// A run's folder, made when it is missing, and locked. Unless kept, it leaves no trace of a run
// that never began.
class RunClaim {
 public:
  // Throws std::invalid_argument when the path is not a folder, or lies in a corpus or in another
  // run, or RunLock does; std::system_error. Then nothing is left that was not there before.
  explicit RunClaim(const RunFolder& folder);
  // Removes the folders that were made here, as far as nobody put anything into them.
  ~RunClaim();
  RunClaim(const RunClaim&) = delete;
  RunClaim& operator=(const RunClaim&) = delete;

  void keep() { made_.clear(); }

 private:
  void remove_what_was_made();

  RunFolder folder_;
  std::vector<std::filesystem::path> made_;  // the innermost first
  std::unique_ptr<RunLock> lock_;
};

// What `file` leads to when it is a link, for write_atomically(). Throws std::invalid_argument when
// that is there and no regular file: a device or a folder is not to be replaced.
std::filesystem::path replaceable_file(const std::filesystem::path& file);

// Replaces `file` by `text` so that a reader, or a crash, sees the old content or the new one.
// Throws std::system_error.
void write_atomically(const std::filesystem::path& file, const std::string& text);

// The whole content. Throws std::system_error with the file's name.
std::string read_file(const std::filesystem::path& file);

}  // namespace tupelo
