// The words that a segmenter knows, from dictionaries in jieba's format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tupelo {

inline constexpr std::size_t kMaxDictionaryBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMaxDictionaryWords = std::size_t{4} << 20;
inline constexpr std::size_t kMaxWordBytes = 256;
inline constexpr std::uint64_t kMaxWordFrequency = std::uint64_t{1} << 40;

// What jieba keeps: a frequency for each word, 0 for each beginning of a word that is none itself.
// Both readers take UTF-8, one entry per line, "\n" or "\r\n", fields set apart by single spaces, a
// byte order mark ignored, and throw CorpusError with file and line for anything else (also for
// the limits above), std::system_error when the system refuses. They return the SHA-256 (hex) of
// the file.
class WordFrequencies {
 public:
  // Lines `word frequency [tag]`. A word that comes twice has its last frequency, while the total
  // counts both, as in jieba.
  std::string add_dictionary(const std::filesystem::path& file);

  // Lines `word [frequency] [tag]` (a tag is made of a-z) or empty ones, on top of what is there. 0
  // forbids the word. A frequency that is missing becomes the least one with which the word is kept
  // whole, as jieba suggests it. A word with a space in it is taken as well, but no text has it.
  std::string add_user_dictionary(const std::filesystem::path& file);

  // A frequency of 0 for what is only the beginning of a word; not found: neither.
  struct Found {
    bool found;
    std::uint64_t frequency;
  };
  Found find(std::string_view text) const;
  std::uint64_t total() const { return total_; }
  // Every word with a frequency above 0, in no order.
  void each_word(
      const std::function<void(const std::string& word, std::uint64_t frequency)>& visit) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  void add_word(std::string_view word, std::uint64_t frequency);
  std::uint64_t suggested_frequency(std::string_view word) const;

  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> frequencies_;
  std::uint64_t total_ = 0;
};

}  // namespace tupelo
