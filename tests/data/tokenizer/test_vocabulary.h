// Vocabularies for tests: written to a file that goes away, loaded from it.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace tupelo::testing {

class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view bytes) {
    std::string name = (std::filesystem::temp_directory_path() / "tupelo-XXXXXX").string();
    const int descriptor = ::mkstemp(name.data());
    if (descriptor < 0) throw std::runtime_error("cannot create " + name);
    ::close(descriptor);
    path_ = name;
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline constexpr std::string_view kSpecialLines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";

// The special tokens, then `tokens`.
inline std::unique_ptr<Tokenizer> make_wordpiece(const std::vector<std::string>& tokens,
                                                 WordPieceOptions options = {}) {
  std::string text(kSpecialLines);
  for (const std::string& token : tokens) text += token + "\n";
  const TemporaryFile file(text);
  return load_wordpiece(file.path(), options);
}

inline std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path.string());
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

inline std::filesystem::path vector_file(const std::string& name) {
  return std::filesystem::path(TUPELO_TEST_DATA) / "tokenizer" / "vectors" / name;
}

}  // namespace tupelo::testing
