// Intermediate results on disk: a description and sections of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/mapped_file.h"

namespace tupelo {

// Writes the file so that it exists with all of its bytes or not at all, and syncs it. Throws
// std::system_error.
void write_sections(const std::filesystem::path& file, const std::string& description,
                    const std::vector<std::span<const std::byte>>& sections);

template <typename Value>
std::span<const std::byte> bytes_of(const std::vector<Value>& values) {
  return std::as_bytes(std::span(values));
}

// Any thread may call the members.
class SectionFile {
 public:
  // Throws CorpusError when the file is not what write_sections() wrote, std::system_error.
  explicit SectionFile(const std::filesystem::path& file);

  const std::string& description() const { return description_; }

  // Begins at a multiple of 8 bytes in memory. Throws CorpusError when its bytes changed.
  std::span<const std::byte> section(std::size_t index) const;
  // Without looking whether they did.
  std::span<const std::byte> unchecked_section(std::size_t index) const;
  template <typename Value>
  std::span<const Value> values(std::size_t index) const {
    const auto bytes = section(index);
    return {reinterpret_cast<const Value*>(bytes.data()), bytes.size() / sizeof(Value)};
  }

  [[noreturn]] void refuse() const;

 private:
  struct Section {
    std::uint64_t first, bytes;
    std::string sha256;
  };
  std::filesystem::path path_;
  MappedFile file_;
  std::string description_;
  std::vector<Section> sections_;
};

}  // namespace tupelo
