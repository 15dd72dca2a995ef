// Vocabularies for tests: written to a file that goes away, loaded from it.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/utf8.h"

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

// A folder that goes away, with files of these names and contents.
class TemporaryFiles {
 public:
  explicit TemporaryFiles(const std::vector<TokenizerFile>& files = {}) {
    std::string name = (std::filesystem::temp_directory_path() / "tupelo-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create " + name);
    path_ = name;
    for (const TokenizerFile& file : files) write(file.name, file.content);
  }
  ~TemporaryFiles() { std::filesystem::remove_all(path_); }
  TemporaryFiles(const TemporaryFiles&) = delete;
  TemporaryFiles& operator=(const TemporaryFiles&) = delete;
  void write(const std::string& name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// vocab.json and merges.txt: `tokens` with ids from 0.
inline std::vector<TokenizerFile> byte_bpe_files_of(const std::vector<std::string>& tokens,
                                                    const std::vector<std::string>& merges) {
  nlohmann::json vocabulary = nlohmann::json::object();
  for (std::size_t id = 0; id < tokens.size(); ++id) vocabulary[tokens[id]] = id;
  std::string lines = "#version: 0.2\n";
  for (const std::string& merge : merges) lines += merge + "\n";
  return {{"vocab.json", vocabulary.dump()}, {"merges.txt", lines}};
}

// The special tokens, the 256 bytes, what the merges make.
inline std::vector<std::string> byte_bpe_tokens(const std::vector<std::string>& merges) {
  std::vector<std::string> tokens{"<s>", "<pad>", "</s>", "<unk>", "<mask>"};
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(to_utf8(byte_symbol(static_cast<std::uint8_t>(byte))));
  }
  for (std::string merge : merges) {
    merge.erase(merge.find(' '), 1);
    tokens.push_back(merge);
  }
  return tokens;
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
