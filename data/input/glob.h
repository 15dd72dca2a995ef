// Patterns that stand for files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tupelo {

bool has_glob(const std::filesystem::path& path);

// What exists and matches, sorted: `*` is any part of a name, `?` one character, `**` any number of
// folders (symbolic links are not followed by it). Names that begin with a dot match only patterns
// that do. Throws std::system_error when a folder cannot be read.
std::vector<std::filesystem::path> expand_glob(const std::filesystem::path& pattern);

}  // namespace tupelo
