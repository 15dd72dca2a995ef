#include "data/input/plain_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "data/errors.h"

namespace tupelo {
namespace {

constexpr std::size_t kFirstBytes = 64;

std::int64_t nanoseconds(const struct timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileState state_of(const struct stat& status) {
  return {static_cast<std::uint64_t>(status.st_size), nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

}  // namespace

FileState file_state(const std::filesystem::path& file) {
  struct stat status;
  if (::stat(file.c_str(), &status) != 0) {
    const int code = errno;
    throw std::system_error(code, std::generic_category(), "cannot read " + file.string());
  }
  return state_of(status);
}

PlainFile::PlainFile(const std::filesystem::path& file, const FileState* expected) : path_(file) {
  // O_NONBLOCK: a FIFO that took the file's place must not make this wait.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) refuse();
  try {
    if (!S_ISREG(status.st_mode)) throw CorpusError(path_.string() + ": is not a regular file");
    opened_ = state_of(status);
    if (expected != nullptr && opened_ != *expected) refuse_change(*expected, opened_);
    range_ = {0, opened_.bytes};
    char start[kFirstBytes];
    first_.assign(start, read_at(start, kFirstBytes, 0));
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

PlainFile::PlainFile(const std::filesystem::path& file, const FileState* expected,
                     const FileRange& range)
    : PlainFile(file, expected) {
  range_ = {std::min(range.begin, opened_.bytes), std::min(range.end, opened_.bytes)};
}

PlainFile::~PlainFile() { ::close(descriptor_); }

void PlainFile::refuse() const {
  const int code = errno;
  throw std::system_error(code, std::generic_category(), "cannot read " + path_.string());
}

void PlainFile::refuse_change(const FileState& before, const FileState& now) const {
  std::string what = path_.string() + ": was changed while it was in use: it had ";
  what += std::to_string(before.bytes) + " bytes and now has " + std::to_string(now.bytes);
  if (before.bytes == now.bytes) what += ", written later";
  throw FileChanged(what);
}

FileState PlainFile::state() const {
  struct stat status;
  if (::fstat(descriptor_, &status) != 0) refuse();
  return state_of(status);
}

std::size_t PlainFile::read_at(char* to, std::size_t most, std::uint64_t from) const {
  ssize_t got;
  do {
    got = ::pread(descriptor_, to, most, static_cast<off_t>(from));
  } while (got < 0 && errno == EINTR);
  if (got < 0) refuse();
  return static_cast<std::size_t>(got);
}

std::size_t PlainFile::read(char* to, std::size_t most) {
  const std::uint64_t from = range_.begin + done_;
  const bool to_the_end = range_.end == opened_.bytes;
  if (!to_the_end) most = std::min<std::uint64_t>(most, range_.end - from);
  const std::size_t got = most == 0 ? 0 : read_at(to, most, from);
  done_ += got;
  if (got > 0 && range_.begin + done_ <= opened_.bytes) return got;
  // At the end, or where the end was: the file must be what it was when it was opened.
  const FileState now = state();
  if (now != opened_) refuse_change(opened_, now);
  if (range_.begin + done_ != range_.end)
    refuse_change(opened_, {from + got, now.modified_ns, now.changed_ns});
  return got;
}

}  // namespace tupelo
