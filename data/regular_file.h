// A file on disk that is read piece by piece, whatever happens to it meanwhile.
//
// Memory-mapped it would be a trap: a file that shrinks, or a disk that fails, then ends the
// process with SIGBUS. Here both are exceptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace tupelo {

// Any thread may call the const members. A file that is deleted or replaced under its name while
// this one is open is still read.
class RegularFile {
 public:
  // Never waits, not even for a FIFO. Where the process has too many files open, its soft limit is
  // raised to the hard one. Throws CorpusError when the file is missing, empty or not a
  // regular file, std::system_error when the system refuses.
  explicit RegularFile(const std::filesystem::path& file);
  ~RegularFile();
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }  // when it was opened

  // Fills `to` with the bytes from `offset` on. Throws CorpusError that names the file when it does
  // not have them, or no longer; std::system_error when the system refuses.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

}  // namespace tupelo
