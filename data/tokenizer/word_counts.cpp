#include "data/tokenizer/word_counts.h"

#include <algorithm>

#include "data/tokenizer/word_splitter.h"

namespace tupelo {

WordCounts::WordCounts() : isolated_(0x110000) {}

void WordCounts::add(const CharacterTable& table, std::string_view text) {
  struct Sink {
    WordCounts& counts;
    void isolated(std::uint32_t code_point) { ++counts.isolated_[code_point]; }
    void long_word() {}
    void word(std::string_view word) {
      const auto found = counts.words_.find(word);
      if (found != counts.words_.end()) {
        ++found->second;
      } else {
        counts.words_.emplace(word, 1);
      }
    }
  };
  split_words(table, text, Sink{*this});
}

void WordCounts::add(const WordCounts& other) {
  for (std::size_t c = 0; c < isolated_.size(); ++c) isolated_[c] += other.isolated_[c];
  for (const auto& [word, count] : other.words_) words_[word] += count;
}

std::vector<CountedWord> WordCounts::sorted() const {
  std::vector<CountedWord> all;
  all.reserve(words_.size());
  for (const auto& [word, count] : words_) all.push_back({word, count});
  for (std::size_t c = 0; c < isolated_.size(); ++c) {
    if (isolated_[c] != 0) all.push_back({to_utf8(static_cast<char32_t>(c)), isolated_[c]});
  }
  std::sort(all.begin(), all.end(),
            [](const CountedWord& a, const CountedWord& b) { return a.word < b.word; });
  return all;
}

}  // namespace tupelo
