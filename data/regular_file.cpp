#include "data/regular_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "data/errors.h"

namespace tupelo {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file) {
  const int code = errno;
  if (code == ENOENT) throw CorpusError(file.string() + ": the file is missing");
  std::string what = "cannot read " + file.string();
  if (code == EMFILE) what += " (shards stay open while they are read: raise `ulimit -Hn`)";
  throw std::system_error(code, std::generic_category(), what);
}

// The most files that this process may have open, as far as that is its own to say.
void raise_limit_of_open_files() {
  struct rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int open_to_read(const std::filesystem::path& file) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const auto open = [&] {
    return ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  };
  int descriptor = open();
  if (descriptor < 0 && errno == EMFILE) {
    raise_limit_of_open_files();
    descriptor = open();
  }
  if (descriptor < 0) refuse(file);
  return descriptor;
}

std::uint64_t regular_bytes_now(int descriptor, const std::filesystem::path& file) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) refuse(file);
  return static_cast<std::uint64_t>(status.st_size);
}

std::uint64_t regular_bytes(int descriptor, const std::filesystem::path& file) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) refuse(file);
  if (!S_ISREG(status.st_mode)) throw CorpusError(file.string() + ": is not a regular file");
  if (status.st_size == 0) throw CorpusError(file.string() + ": the file is empty");
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

RegularFile::RegularFile(const std::filesystem::path& file)
    : path_(file), descriptor_(open_to_read(file)) {
  try {
    bytes_ = regular_bytes(descriptor_, file);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_) {}

void RegularFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  if (offset > bytes_ || to.size() > bytes_ - offset) {
    throw CorpusError(path_.string() + ": has only " + std::to_string(bytes_) +
                      " bytes, but points to " + std::to_string(to.size()) + " more from " +
                      std::to_string(offset) + " on");
  }
  while (!to.empty()) {
    const ssize_t got = ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(path_);
    if (got == 0) {
      throw CorpusError(path_.string() + ": ends at byte " +
                        std::to_string(regular_bytes_now(descriptor_, path_)) + ", but had " +
                        std::to_string(bytes_) + " bytes when it was opened");
    }
    offset += static_cast<std::uint64_t>(got);
    to = to.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace tupelo
