// The input in pieces of work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "data/input/file_documents.h"

namespace tupelo {

// Documents that follow each other: of some files, or of a part of one.
struct TextGroup {
  std::size_t first_source = 0, sources = 0;
  std::optional<FileRange> range = {};  // of the only file, between two document boundaries
  std::uint64_t bytes = 0;              // of the files
};

// All documents in their order, in groups of about `group_bytes` bytes of files. A file that is not
// divisible stays whole. Depends on sources, options and `group_bytes` alone. Throws CorpusError
// when a file changed, std::system_error.
std::vector<TextGroup> divide_into_groups(const std::vector<TextSource>& sources,
                                          const ReadOptions& options, std::uint64_t group_bytes);

}  // namespace tupelo
