// Files read or written once from start to end, and the calls that make them survive a power
// failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "checkpoints/sha256.h"

namespace tupelo {

// Whether a SHA-256 is taken of the bytes as they pass.
enum class Hashing { kOff, kOn };

// Owns a file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor = -1) : descriptor_(descriptor) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  int get() const { return descriptor_; }
  // Gives up ownership.
  int release();

 private:
  int descriptor_;
};

// A new file. Every call throws std::system_error with the file's name when the disk refuses; the
// half-written file is then the caller's to remove.
class OutputFile {
 public:
  // Fails when `file` exists, even as a dangling link.
  OutputFile(std::filesystem::path file, unsigned mode, Hashing hashing);

  void write(const void* bytes, std::size_t count);
  // Makes the content durable and closes the file. The file's name is durable only after
  // sync_folder().
  void commit();

  std::uint64_t size() const { return size_; }
  // After commit(), with Hashing::kOn.
  const std::string& sha256() const { return sha256_; }

 private:
  std::filesystem::path file_;
  FileDescriptor descriptor_;
  std::optional<Sha256> hash_;
  std::uint64_t size_ = 0;
  std::string sha256_;
};

// An existing regular file.
class InputFile {
 public:
  enum class Links { kFollow, kRefuse };

  // Throws std::system_error when it cannot be opened, CorruptCheckpoint when it is not a regular
  // file (a refused link counts as such).
  InputFile(std::filesystem::path file, Links links, Hashing hashing);

  const std::filesystem::path& file() const { return file_; }
  std::uint64_t size() const { return size_; }
  // Reads exactly `count` bytes. Throws CorruptCheckpoint when the file ends before.
  void read(void* into, std::size_t count);
  // Reads what is left, for its digest.
  void skip_to_end();
  // Of everything read; ends reading. With Hashing::kOn.
  std::string sha256();
  // Asks the kernel to forget its copy of the file, so that a read shows what the disk holds.
  // Advice only: a page that is not yet written stays.
  void drop_cached_pages();

 private:
  std::filesystem::path file_;
  FileDescriptor descriptor_;
  std::optional<Sha256> hash_;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
};

// Makes the names inside `folder` durable. Throws std::system_error.
void sync_folder(const std::filesystem::path& folder);
// rename(2). Throws std::system_error.
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);
// '<path>', as messages name files.
std::string quoted(const std::filesystem::path& path);
// 16 hexadecimal digits that no other process can predict.
std::string random_suffix();
// Throws std::system_error for errno: "cannot <action> '<path>': <reason>".
[[noreturn]] void throw_system_error(const std::string& action, const std::filesystem::path& path);

}  // namespace tupelo
