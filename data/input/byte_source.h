// Bytes of a file, decompressed on the way, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "data/errors.h"

namespace tupelo {

// A file that is another one than it was a moment ago: nothing that was read of it counts.
class FileChanged : public CorpusError {
 public:
  using CorpusError::CorpusError;
};

// What tells one state of a file from another.
struct FileState {
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;  // of its times, owner, mode or links, too
  // Whether it was not written to, as far as can be told without reading it.
  bool operator==(const FileState& other) const {
    return bytes == other.bytes && modified_ns == other.modified_ns;
  }
};

// Bytes [begin, end) of a file.
struct FileRange {
  std::uint64_t begin = 0, end = 0;
};

// Throws std::system_error that names the file.
FileState file_state(const std::filesystem::path& file);

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Up to `most` (at least 1) bytes; 0 only at the end. Throws CorpusError when the file is
  // damaged, was changed since it was opened, or is not what its name says; std::system_error when
  // it cannot be read.
  virtual std::size_t read(char* to, std::size_t most) = 0;

  // Bytes taken from the file itself, so compressed ones where it is compressed.
  virtual std::uint64_t file_bytes() const = 0;
};

// gzip and zstd, each of any number of members (frames), are recognized by their first bytes and
// decompressed; a file that is named .gz, .zst or .zstd and is neither is refused. A zstd frame may
// ask for a window of at most 128 MiB, as the zstd program has it. `expected`, if given, is the
// state in which the file must still be.
std::unique_ptr<ByteSource> open_byte_source(const std::filesystem::path& file,
                                             const FileState* expected = nullptr);

// All bytes of `source`. Throws CorpusError, which begins with `name`, when there are more than
// `most`.
std::string read_all(ByteSource& source, std::size_t most, const std::string& name);

}  // namespace tupelo
