// How often each word occurs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer/character_table.h"

namespace tupelo {

struct CountedWord {
  std::string word;
  std::uint64_t count;
};

// Memory grows with the number of distinct words, not with the text. One thread at a time.
class WordCounts {
 public:
  WordCounts();

  // `table` must have been built with the character itself as payload of isolated characters. Words
  // of more than WordBuffer::kMaxCharacters characters are not counted: no vocabulary can hold
  // them.
  void add(const CharacterTable& table, std::string_view text);
  void add(const WordCounts& other);

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

  std::vector<std::uint64_t> isolated_;  // by code point; almost every word of Chinese text
  WordMap words_;
};

}  // namespace tupelo
