// vocab.txt, read with suspicion.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace tupelo {

inline constexpr std::size_t kMaxVocabularyBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxVocabularyTokens = std::size_t{1} << 20;
inline constexpr std::size_t kMaxTokenBytes = 1024;

// One token per line, "\n" or "\r\n". Throws CorpusError with file and line for: an empty file, a
// file or token beyond the limits above, an empty line, a token with white space or a NUL, invalid
// UTF-8, a byte order mark, a token that occurred before; std::system_error when the file cannot be
// read.
std::vector<std::string> read_vocabulary(const std::filesystem::path& file);

}  // namespace tupelo
