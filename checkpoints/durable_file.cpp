#include "checkpoints/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "checkpoints/corrupt_checkpoint.h"

namespace tupelo {
namespace {

// Hashing and writing alternate on blocks that stay in the cache between the two.
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

int open_retrying(const std::filesystem::path& path, int flags, unsigned mode = 0) {
  int descriptor;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

}  // namespace

void throw_system_error(const std::string& action, const std::filesystem::path& path) {
  const int error = errno;  // before anything else changes it
  throw std::system_error(error, std::generic_category(), "cannot " + action + " " + quoted(path));
}

std::string quoted(const std::filesystem::path& path) {
  std::string text = path.string();
  text.insert(text.begin(), '\'');
  text += '\'';
  return text;
}

FileDescriptor::~FileDescriptor() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(other.release()) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

int FileDescriptor::release() { return std::exchange(descriptor_, -1); }

OutputFile::OutputFile(std::filesystem::path file, unsigned mode, Hashing hashing)
    : file_(std::move(file)),
      descriptor_(open_retrying(file_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode)) {
  if (descriptor_.get() < 0) {
    throw_system_error("create", file_);
  }
  if (hashing == Hashing::kOn) {
    hash_.emplace();
  }
}

void OutputFile::write(const void* bytes, std::size_t count) {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::write(descriptor_.get(), next, std::min(count, kBlockBytes));
    if (written < 0) {
      if (errno == EINTR) continue;
      throw_system_error("write", file_);
    }
    const auto accepted = static_cast<std::size_t>(written);
    if (hash_) hash_->update(next, accepted);
    next += accepted;
    count -= accepted;
    size_ += accepted;
  }
}

void OutputFile::commit() {
  if (::fsync(descriptor_.get()) != 0) {
    throw_system_error("make durable", file_);
  }
  // Network file systems report a full disk or quota only here.
  if (::close(descriptor_.release()) != 0) {
    throw_system_error("close", file_);
  }
  if (hash_) sha256_ = hash_->finish();
}

InputFile::InputFile(std::filesystem::path file, Links links, Hashing hashing)
    : file_(std::move(file)),
      // Without O_NONBLOCK, opening a pipe that somebody put here would wait for ever.
      descriptor_(open_retrying(
          file_, O_RDONLY | O_NONBLOCK | (links == Links::kRefuse ? O_NOFOLLOW : 0))) {
  if (descriptor_.get() < 0) {
    if (errno == ELOOP) {
      throw CorruptCheckpoint(quoted(file_) + " is a symbolic link, not a regular file");
    }
    throw_system_error("open", file_);
  }
  struct stat status;
  if (::fstat(descriptor_.get(), &status) != 0) {
    throw_system_error("inspect", file_);
  }
  if (!S_ISREG(status.st_mode)) {
    throw CorruptCheckpoint(quoted(file_) + " is not a regular file");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
  if (hashing == Hashing::kOn) {
    hash_.emplace();
  }
}

void InputFile::read(void* into, std::size_t count) {
  char* next = static_cast<char*>(into);
  while (count > 0) {
    const ssize_t received = ::read(descriptor_.get(), next, std::min(count, kBlockBytes));
    if (received < 0) {
      if (errno == EINTR) continue;
      throw_system_error("read", file_);
    }
    if (received == 0) {
      throw CorruptCheckpoint(quoted(file_) + " ends after " + std::to_string(position_) +
                              " bytes, " + std::to_string(count) + " bytes too early");
    }
    const auto available = static_cast<std::size_t>(received);
    if (hash_) hash_->update(next, available);
    next += available;
    count -= available;
    position_ += available;
  }
}

void InputFile::skip_to_end() {
  std::vector<char> block(kBlockBytes);
  while (position_ < size_) {
    read(block.data(), std::min<std::uint64_t>(block.size(), size_ - position_));
  }
}

std::string InputFile::sha256() { return hash_->finish(); }

void InputFile::drop_cached_pages() {
  ::posix_fadvise(descriptor_.get(), 0, 0, POSIX_FADV_DONTNEED);
}

void sync_folder(const std::filesystem::path& folder) {
  const FileDescriptor descriptor(open_retrying(folder, O_RDONLY | O_DIRECTORY));
  if (descriptor.get() < 0) {
    throw_system_error("open", folder);
  }
  if (::fsync(descriptor.get()) != 0) {
    throw_system_error("make durable", folder);
  }
}

void rename_path(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    throw_system_error("rename " + quoted(from) + " to", to);
  }
}

std::string random_suffix() {
  std::random_device entropy;
  std::array<char, 17> text;
  std::snprintf(text.data(), text.size(), "%08x%08x", entropy(), entropy());
  return text.data();
}

}  // namespace tupelo
