#include "data/corpus_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "data/errors.h"
#include "data/regular_file.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& what, const fs::path& path) {
  const int code = errno;
  throw std::system_error(code, std::generic_category(), what + " " + path.string());
}

// A file descriptor that closes itself.
class Opened {
 public:
  Opened(const fs::path& path, int flags, const char* what)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) refuse(what, path);
  }
  ~Opened() { ::close(descriptor_); }
  Opened(const Opened&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

bool is_replaceable(const fs::path& output, const std::string& marker) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(output, ignored)) &&
         (fs::is_empty(output, ignored) || fs::exists(output / marker, ignored));
}

void check_output(const fs::path& output, bool force, const std::string& marker) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(output, ignored))) return;
  if (!force) {
    throw std::invalid_argument("output " + output.string() +
                                " exists already: choose another or force its replacement");
  }
  if (!is_replaceable(output, marker)) {
    throw std::invalid_argument("output " + output.string() + " is not " +
                                (marker == "index.json" ? "a corpus" : "a folder with " + marker) +
                                ", so it is not replaced");
  }
}

std::string unfinished_prefix(const fs::path& output) {
  std::string prefix = ".";
  prefix += output.filename().string();
  return prefix + ".unfinished-";
}

// A descriptor that holds the lock, or -1 with errno.
int lock_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  const int code = errno;
  ::close(descriptor);
  errno = code;
  return -1;
}

// The lock of a killed run is gone with it, so a folder that can be locked is nobody's. `own`
// stays.
void remove_leftovers(const fs::path& output, const fs::path& own = {}) {
  std::error_code ignored;
  const std::string prefix = unfinished_prefix(output);
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(output.parent_path(), ignored)) {
    const fs::path& path = entry.path();
    if (path != own && path.filename().string().starts_with(prefix)) leftovers.push_back(path);
  }
  for (const fs::path& leftover : leftovers) {
    const int lock = lock_folder(leftover);
    if (lock < 0) continue;
    fs::remove_all(leftover, ignored);
    ::close(lock);
  }
}

std::string random_name() {
  std::random_device random;
  return std::to_string(random());
}

// False when the folder is there already.
bool create_folder(const fs::path& folder) {
  std::error_code error;
  const bool created = fs::create_directory(folder, error);
  if (error) throw std::system_error(error, "cannot create " + folder.string());
  return created;
}

// Another run that clears leftovers may take a folder for one before it is locked: then make
// another. Where the file system knows no locks, nobody clears, and -1 will do.
std::pair<WorkPlace, int> create_locked_place(const fs::path& output) {
  for (;;) {
    WorkPlace place = work_place(output, random_name());
    if (!create_folder(place.root)) continue;
    const int lock = lock_folder(place.root);
    if (lock >= 0 || (errno != EWOULDBLOCK && errno != ENOENT)) return {std::move(place), lock};
  }
}

// The lock of a work place of this name, which may have been there.
int lock_place(const WorkPlace& place, const fs::path& output) {
  for (;;) {
    create_folder(place.root);
    const int lock = lock_folder(place.root);
    if (lock < 0 && errno == EWOULDBLOCK) {
      throw std::invalid_argument("output " + output.string() +
                                  " is being made by another process: wait until it is done");
    }
    // Somebody may have taken it for a leftover before it was locked.
    if (lock < 0 && errno != ENOENT) return lock;
    if (lock >= 0 && fs::exists(place.root)) return lock;
    if (lock >= 0) ::close(lock);
  }
}

fs::path checked_output(const fs::path& output) {
  fs::path place = fs::absolute(output).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();  // "corpus/"
  if (!place.has_filename()) {
    throw std::invalid_argument("output " + output.string() + " cannot be a corpus");
  }
  return place;
}

void sync_tree(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) sync_tree(entry.path());
  }
  sync_corpus_folder(folder);
}

// Not every file system can exchange two names; where none can, the old corpus steps aside first.
void replace(const fs::path& finished, const fs::path& output) {
  if (::renameat2(AT_FDCWD, finished.c_str(), AT_FDCWD, output.c_str(), RENAME_EXCHANGE) == 0) {
    return;
  }
  if (errno != EINVAL && errno != ENOSYS) refuse("cannot replace", output);
  const fs::path aside = finished.string() + "-old";
  if (::rename(output.c_str(), aside.c_str()) != 0) refuse("cannot replace", output);
  if (::rename(finished.c_str(), output.c_str()) != 0) {
    const int code = errno;
    ::rename(aside.c_str(), output.c_str());
    errno = code;
    refuse("cannot replace", output);
  }
  ::rename(aside.c_str(), finished.c_str());
}

}  // namespace

NewCorpusFile::NewCorpusFile(const fs::path& file)
    : path_(file),
      descriptor_(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) refuse("cannot create", file);
}

NewCorpusFile::~NewCorpusFile() { ::close(descriptor_); }

void NewCorpusFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse("cannot write", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void NewCorpusFile::sync() {
  if (::fsync(descriptor_) != 0) refuse("cannot write", path_);
}

void write_corpus_file(const fs::path& file, std::span<const std::byte> bytes) {
  NewCorpusFile opened(file);
  opened.append(bytes);
  opened.sync();
}

void write_corpus_file(const fs::path& file, const std::string& text) {
  write_corpus_file(file, std::as_bytes(std::span(text)));
}

void replace_corpus_file(const fs::path& file, std::span<const std::byte> bytes) {
  const fs::path written = file.string() + ".new";
  std::error_code ignored;
  fs::remove(written, ignored);  // left by a killed run
  write_corpus_file(written, bytes);
  if (::rename(written.c_str(), file.c_str()) != 0) refuse("cannot create", file);
}

void replace_corpus_file(const fs::path& file, const std::string& text) {
  replace_corpus_file(file, std::as_bytes(std::span(text)));
}

void sync_corpus_folder(const fs::path& folder) {
  const Opened opened(folder, O_RDONLY | O_DIRECTORY, "cannot open");
  if (::fsync(opened.get()) != 0) refuse("cannot sync", folder);
}

std::string read_corpus_text(const fs::path& file, std::size_t max_bytes) {
  const RegularFile opened(file);
  if (opened.bytes() > max_bytes) {
    throw CorpusError(file.string() + ": is larger than " + std::to_string(max_bytes) + " bytes");
  }
  std::string text(opened.bytes(), '\0');
  opened.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

WorkPlace work_place(const fs::path& output, const std::string& job) {
  const fs::path place = checked_output(output);
  return {place.parent_path() / (unfinished_prefix(place) + job)};
}

UnfinishedCorpus::UnfinishedCorpus(const fs::path& output, bool force, const std::string& marker)
    : output_(checked_output(output)), force_(force) {
  prepare_parent(marker);
  remove_leftovers(output_);
  std::tie(place_, lock_) = create_locked_place(output_);
  create_folder(place_.corpus());
  create_folder(place_.scratch());
}

UnfinishedCorpus::UnfinishedCorpus(const WorkPlace& place, const fs::path& output, bool force)
    : output_(checked_output(output)), force_(force), place_(place) {
  prepare_parent("index.json");
  remove_leftovers(output_, place_.root);
  lock_ = lock_place(place_, output_);
  create_folder(place_.corpus());
  create_folder(place_.scratch());
}

void UnfinishedCorpus::prepare_parent(const std::string& marker) const {
  check_output(output_, force_, marker);
  std::error_code error;
  fs::create_directories(output_.parent_path(), error);
  if (error) throw std::system_error(error, "cannot create " + output_.parent_path().string());
}

UnfinishedCorpus::~UnfinishedCorpus() {
  std::error_code ignored;
  fs::remove_all(place_.root, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void UnfinishedCorpus::publish() {
  const fs::path finished = folder();
  sync_tree(finished);
  std::error_code ignored;
  if (force_ && fs::exists(output_, ignored)) {
    replace(finished, output_);
  } else if (::rename(finished.c_str(), output_.c_str()) != 0) {
    refuse("cannot create", output_);
  }
  sync_corpus_folder(output_.parent_path());
}

}  // namespace tupelo
