// How often each word occurs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tupelo {

struct CountedWord {
  std::string word;
  std::uint64_t count;
};

// Memory grows with the number of distinct words, not with the text. One thread at a time.
class WordCounts {
 public:
  void add_word(std::string_view word);
  void add_character(char32_t code_point);  // the same as its word, and faster
  void add(const WordCounts& other);
  void add(const CountedWord& word);

  // All words, sorted by bytes: the same whatever order they were counted in.
  std::vector<CountedWord> sorted() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const {
      return std::hash<std::string_view>{}(word);
    }
  };
  using WordMap = std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>>;

  std::vector<std::uint64_t> characters_;  // by code point; almost every word of Chinese text
  WordMap words_;
};

// Counts the words of texts on several threads: the same words whatever thread counts which.
class ParallelWordCounts {
 public:
  using CountText = std::function<void(std::string_view text, WordCounts& counts)>;

  // `count_text` is called from many threads. Throws std::invalid_argument when threads < 1.
  ParallelWordCounts(int threads, CountText count_text);

  void add(const std::vector<std::string>& texts);
  void add(const std::vector<CountedWord>& words);
  std::vector<CountedWord> sorted() const;

 private:
  std::size_t threads_;
  CountText count_text_;
  std::vector<WordCounts> counts_;  // one per thread
};

}  // namespace tupelo
