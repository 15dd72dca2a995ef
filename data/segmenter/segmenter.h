// Chinese text to words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tupelo {

struct DictionaryFile {
  std::filesystem::path file;
  std::string sha256;  // of its bytes
};

// Of jieba 0.42.1's own dictionary.
inline constexpr const char* kJiebaSha256 =
    "7197c3211ddd98962b036cdf40324d1ea2bfaa12bd028e68faa70111a88e12a8";

// Cuts text as jieba.cut(text, HMM=False) does (version 0.42.1) with the same dictionaries: the
// words whose product of relative frequencies is largest. Immutable after construction; segment()
// may be called from many threads at once.
// Source of the method: maximum-probability path in a word graph, as jieba documents it.
class Segmenter {
 public:
  // `dictionary` in jieba's format, then the user's, in order; the formats and what is thrown:
  // word_frequencies.h. About 0.5 s and 100 MB for a dictionary of 350,000 words, 30 MB afterwards.
  Segmenter(const std::filesystem::path& dictionary,
            const std::vector<std::filesystem::path>& user_dictionaries = {});
  ~Segmenter();
  Segmenter(const Segmenter&) = delete;

  // Appends where words end, as byte offsets in `text`, rising, the last one text.size(). Every
  // byte belongs to a word: each character of white space (but "\r\n") and each punctuation mark is
  // one. What is not UTF-8 counts as U+FFFD.
  void segment(std::string_view text, std::vector<std::size_t>& word_ends) const;

  // The files it was made from: the dictionary, then the user's.
  const std::vector<DictionaryFile>& files() const { return files_; }
  // SHA-256 (hex) over the rules and the files' digests: equal fingerprints cut every text equally.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  class Lexicon;

  std::vector<DictionaryFile> files_;
  std::string fingerprint_;
  std::unique_ptr<const Lexicon> lexicon_;
};

}  // namespace tupelo
