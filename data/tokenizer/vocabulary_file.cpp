#include "data/tokenizer/vocabulary_file.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "data/errors.h"
#include "data/tokenizer/bounded_file.h"
#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

[[noreturn]] void throw_damaged(const std::filesystem::path& file, const std::string& what) {
  throw CorpusError("vocabulary " + file.string() + ": " + what);
}

[[noreturn]] void throw_damaged(const std::filesystem::path& file, std::size_t line,
                                const std::string& what) {
  throw_damaged(file, "line " + std::to_string(line) + ": " + what);
}

void check_token(const std::filesystem::path& file, std::size_t line, std::string_view token) {
  if (token.empty()) throw_damaged(file, line, "empty, but each line must hold one token");
  if (token.size() > kMaxTokenBytes) {
    throw_damaged(file, line, "longer than " + std::to_string(kMaxTokenBytes) + " bytes");
  }
  if (token.find('\0') != token.npos)
    throw_damaged(file, line, "holds a NUL byte: not a text file?");
  if (token.find_first_of(" \t\r\v\f") != token.npos) {
    throw_damaged(file, line, "holds white space, but each line must hold one token alone");
  }
  if (!is_valid_utf8(token)) throw_damaged(file, line, "is not valid UTF-8");
  if (line == 1 && token.starts_with("\xEF\xBB\xBF")) {
    throw_damaged(file, line, "begins with a byte order mark: remove it");
  }
}

}  // namespace

std::vector<std::string> read_vocabulary(const std::filesystem::path& file) {
  const std::string bytes = read_bounded_file(file, kMaxVocabularyBytes, "vocabulary");
  if (bytes.empty()) throw_damaged(file, "empty, but it must hold one token per line");
  const auto line_ends = static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  if (line_ends + (bytes.back() == '\n' ? 0 : 1) > kMaxVocabularyTokens) {
    throw_damaged(file, kMaxVocabularyTokens + 1,
                  "more than " + std::to_string(kMaxVocabularyTokens) + " tokens");
  }
  std::vector<std::string> tokens;
  std::unordered_map<std::string_view, std::size_t> line_of;  // views into `bytes`
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
    std::string_view token(bytes.data() + begin, end - begin);
    if (token.ends_with('\r')) token.remove_suffix(1);
    const std::size_t line = tokens.size() + 1;
    check_token(file, line, token);
    const auto [earlier, is_new] = line_of.emplace(token, line);
    if (!is_new) {
      throw_damaged(file, line,
                    "the token '" + std::string(token) + "' occurred on line " +
                        std::to_string(earlier->second) + " before");
    }
    tokens.emplace_back(token);
    begin = end + 1;
  }
  return tokens;
}

}  // namespace tupelo
