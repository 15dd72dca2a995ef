#include "launcher/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace tupelo {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& action, const fs::path& file) {
  throw std::system_error(errno, std::generic_category(), action + " " + file.string());
}

class Descriptor {
 public:
  Descriptor(const fs::path& file, int flags)
      : value_(open(file.c_str(), flags | O_CLOEXEC, 0666)) {
    if (value_ < 0) refuse("cannot open", file);
  }
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

void write_all(int descriptor, const std::string& text, const fs::path& file) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(descriptor, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse("cannot write", file);
    written += static_cast<std::size_t>(count);
  }
}

// A run among the files of a corpus, or of another run, would be taken for a part of it.
void refuse_place_of_others(const fs::path& root) {
  for (fs::path path = root; path.has_relative_path(); path = path.parent_path()) {
    if (fs::exists(path / "index.json") && fs::is_directory(path / "tokenizer")) {
      throw std::invalid_argument("--run: " + root.string() + " lies in the corpus " +
                                  path.string() + "; name a folder outside");
    }
    const RunFolder run(path);
    if (path != root && fs::exists(run.description()) && fs::is_directory(run.checkpoints())) {
      throw std::invalid_argument("--run: " + root.string() + " lies in the run " + path.string() +
                                  "; name a folder outside");
    }
  }
}

// Other runs below would then lie in this one.
void refuse_folder_of_runs(const fs::path& root) {
  if (!fs::is_directory(root)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    const RunFolder inner(entry.path());
    if (!fs::exists(inner.description()) || !fs::is_directory(inner.checkpoints())) continue;
    throw std::invalid_argument("--run: " + root.string() + " holds another run, " +
                                entry.path().filename().string() + "; name a folder of its own");
  }
}

}  // namespace

bool RunFolder::holds_a_run() const {
  const bool any_checkpoint = fs::is_directory(checkpoints()) && !fs::is_empty(checkpoints());
  return any_checkpoint || fs::exists(metrics()) || fs::exists(config());
}

bool RunFolder::holds_a_checkpoint() const {
  if (!fs::is_directory(checkpoints())) return false;
  const fs::directory_iterator entries(checkpoints());
  return std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with("step-");
  });
}

void RunFolder::clear() const {
  fs::remove_all(checkpoints());
  fs::remove_all(plans());
  for (const fs::path& file : {metrics(), config(), description()}) fs::remove(file);
}

RunLock::RunLock(const fs::path& file) {
  Descriptor descriptor(file, O_RDWR | O_CREAT);
  if (flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) refuse("cannot lock", file);
    std::array<char, 128> holder{};
    const ssize_t count = read(descriptor.get(), holder.data(), holder.size() - 1);
    throw std::invalid_argument("run folder " + file.parent_path().string() +
                                " is in use by another run (" +
                                std::string(holder.data(), count > 0 ? count : 0) + ")");
  }
  std::array<char, 64> host{};
  gethostname(host.data(), host.size() - 1);
  if (ftruncate(descriptor.get(), 0) != 0) refuse("cannot write", file);
  write_all(descriptor.get(),
            "process " + std::to_string(getpid()) + " on " + std::string(host.data()), file);
  descriptor_ = descriptor.release();
}

RunLock::~RunLock() { close(descriptor_); }

RunClaim::RunClaim(const RunFolder& folder) : folder_(folder) {
  const fs::path root = fs::absolute(folder.root()).lexically_normal();
  if (fs::exists(root) && !fs::is_directory(root)) {
    throw std::invalid_argument("--run: " + folder.root().string() + " is not a folder");
  }
  refuse_place_of_others(root);
  refuse_folder_of_runs(root);
  for (fs::path path = root; !fs::exists(path); path = path.parent_path()) {
    if (path.has_filename()) made_.push_back(path);
  }
  const bool had_lock = fs::exists(folder.lock());
  try {
    std::error_code error;
    if (!fs::create_directories(root, error) && error) {
      throw std::system_error(error, "cannot make run folder " + folder.root().string());
    }
    lock_ = std::make_unique<RunLock>(folder.lock());
  } catch (const std::system_error&) {  // another error means that the lock is somebody's
    std::error_code ignored;
    if (!had_lock) fs::remove(folder.lock(), ignored);
    remove_what_was_made();
    throw;
  }
}

RunClaim::~RunClaim() { remove_what_was_made(); }

void RunClaim::remove_what_was_made() {
  if (made_.empty()) return;
  std::error_code ignored;
  fs::remove(folder_.checkpoints(), ignored);  // succeeds only when it is empty
  fs::remove(folder_.lock(), ignored);
  for (const fs::path& path : made_) fs::remove(path, ignored);
}

fs::path replaceable_file(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(file, ignored))) return file;
  const fs::path target = fs::weakly_canonical(file);
  if (fs::exists(target, ignored) && !fs::is_regular_file(target, ignored)) {
    throw std::invalid_argument("output " + file.string() +
                                " is not an ordinary file, so it is not replaced");
  }
  return target;
}

void write_atomically(const fs::path& file, const std::string& text) {
  const fs::path temporary = file.string() + ".new";
  try {
    Descriptor descriptor(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    write_all(descriptor.get(), text, temporary);
    if (fsync(descriptor.get()) != 0) refuse("cannot write", temporary);
    fs::rename(temporary, file);
    const fs::path parent = file.has_parent_path() ? file.parent_path() : fs::path(".");
    Descriptor folder(parent, O_RDONLY | O_DIRECTORY);
    if (fsync(folder.get()) != 0) refuse("cannot sync", parent);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

std::string read_file(const fs::path& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (stream) text << stream.rdbuf();
  if (!stream || fs::is_directory(file)) {
    if (errno == 0) errno = EIO;
    refuse("cannot read", file);
  }
  return text.str();
}

}  // namespace tupelo
