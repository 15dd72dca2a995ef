// Files that somebody else made, read whole but never without end.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace tupelo {

// Throws CorpusError "WHAT FILE: larger than ..." beyond `max_bytes`, std::system_error when the
// file cannot be read.
std::string read_bounded_file(const std::filesystem::path& file, std::size_t max_bytes,
                              const std::string& what);

}  // namespace tupelo
