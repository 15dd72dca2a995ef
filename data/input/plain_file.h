// The bytes of a file as they are.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "data/input/byte_source.h"

namespace tupelo {

class PlainFile : public ByteSource {
 public:
  // Throws CorpusError when it is no regular file or is not in the state `expected`.
  PlainFile(const std::filesystem::path& file, const FileState* expected);
  // Of its bytes only those within `range`.
  PlainFile(const std::filesystem::path& file, const FileState* expected, const FileRange& range);
  ~PlainFile() override;
  PlainFile(const PlainFile&) = delete;

  // The first bytes of the file, at most 64; does not move read().
  std::string_view first_bytes() const { return first_; }

  std::size_t read(char* to, std::size_t most) override;
  std::uint64_t file_bytes() const override { return done_; }
  const FileState& state_when_opened() const { return opened_; }

 private:
  FileState state() const;
  std::size_t read_at(char* to, std::size_t most, std::uint64_t from) const;
  [[noreturn]] void refuse() const;
  [[noreturn]] void refuse_change(const FileState& before, const FileState& now) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  FileState opened_;
  std::string first_;
  FileRange range_;
  std::uint64_t done_ = 0;  // bytes of the range
};

}  // namespace tupelo
