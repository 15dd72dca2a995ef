// A file as read-only memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace tupelo {

class MappedFile {
 public:
  // A regular, non-empty file. Throws CorpusError when it is missing, empty or something else,
  // std::system_error when the system refuses.
  explicit MappedFile(const std::filesystem::path& file);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace tupelo
