#include "data/tokenizer/vocabulary_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "data/errors.h"
#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(const std::filesystem::path& file)
      : value_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~FileDescriptor() {
    if (value_ >= 0) ::close(value_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

[[noreturn]] void throw_errno(const std::filesystem::path& file) {
  throw std::system_error(errno, std::generic_category(),
                          "cannot read the vocabulary " + file.string());
}

[[noreturn]] void throw_damaged(const std::filesystem::path& file, const std::string& what) {
  throw CorpusError("vocabulary " + file.string() + ": " + what);
}

[[noreturn]] void throw_damaged(const std::filesystem::path& file, std::size_t line,
                                const std::string& what) {
  throw_damaged(file, "line " + std::to_string(line) + ": " + what);
}

// Reads instead of asking for the size first: pipes and devices have none.
std::string read_bounded(const std::filesystem::path& file) {
  const FileDescriptor descriptor(file);
  if (descriptor.value() < 0) throw_errno(file);
  std::string bytes;
  std::size_t used = 0;
  while (true) {
    bytes.resize(used + (std::size_t{1} << 16));
    const ssize_t got = ::read(descriptor.value(), bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(file);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
    if (used > kMaxVocabularyBytes) {
      throw_damaged(file, "larger than " + std::to_string(kMaxVocabularyBytes >> 20) +
                              " MiB: is this a vocabulary with one token per line?");
    }
  }
  bytes.resize(used);
  return bytes;
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
  const std::string bytes = read_bounded(file);
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
