// Text to words: the likeliest sequence of a dictionary's words.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "data/tokenizer/utf8.h"

namespace tupelo {

// Characters whose runs are looked up in the dictionary: jieba's [\u4E00-\u9FD5a-zA-Z0-9+#&._%-].
constexpr bool is_ascii_alphanumeric(char32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr bool is_dictionary_character(char32_t c) {
  if (c >= 0x4E00 && c <= 0x9FD5) return true;
  return is_ascii_alphanumeric(c) || c == '+' || c == '#' || c == '&' || c == '.' || c == '_' ||
         c == '%' || c == '-';
}

// The rules of jieba.cut(text, HMM=False), version 0.42.1. `Lexicon` offers
//   Cursor cursor() const               the empty beginning
//   double unknown_weight() const       log probability of a character that begins no word
// and its Cursor
//   bool extend(const char* begin, const char* from, const char* to)
//                                       by the character [from, to), `begin` being the place where
//                                       the cursor began; false when no word begins so
//   bool is_word() const, double weight() const
// One object serves one thread; it keeps its scratch memory from text to text.
template <class Lexicon>
class LikeliestWords {
 public:
  explicit LikeliestWords(const Lexicon& lexicon) : lexicon_(lexicon) {}

  // Appends where words end, as byte offsets in `text`, rising, the last one text.size(). Every
  // byte belongs to a word: white space and punctuation are words, too.
  void find(std::string_view text, std::vector<std::size_t>& word_ends) {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    for (const char* at = begin; at != end;) {
      const Utf8Character character = read_utf8(at, end);
      if (is_dictionary_character(character.code_point)) {
        at = read_run(at, end);
        choose_words();
        emit_words(begin, word_ends);
        continue;
      }
      at += character.bytes;
      if (character.code_point == '\r' && at != end && *at == '\n') ++at;
      word_ends.push_back(static_cast<std::size_t>(at - begin));
    }
  }

 private:
  struct Place {
    const char* at;      // of a character
    double score = 0;    // log probability of the best words from here to the end of the run
    std::uint32_t next;  // number of the character behind the first of those words
    bool is_alphanumeric;
  };

  // Places of the characters from `at` on, and of the end of the run, which is returned.
  const char* read_run(const char* at, const char* end) {
    places_.clear();
    while (at != end) {
      const Utf8Character character = read_utf8(at, end);
      if (!is_dictionary_character(character.code_point)) break;
      places_.push_back({at, 0, 0, is_ascii_alphanumeric(character.code_point)});
      at += character.bytes;
    }
    places_.push_back({at, 0, 0, false});
    return at;
  }

  // From the last character back: of words that score the same, the longest.
  void choose_words() {
    const std::size_t count = places_.size() - 1;
    for (std::size_t i = count; i-- > 0;) {
      double best = -std::numeric_limits<double>::infinity();
      std::size_t next = 0;
      auto cursor = lexicon_.cursor();
      for (std::size_t j = i; j < count; ++j) {
        if (!cursor.extend(places_[i].at, places_[j].at, places_[j + 1].at)) break;
        if (!cursor.is_word()) continue;
        const double score = cursor.weight() + places_[j + 1].score;
        if (score < best) continue;
        best = score;
        next = j + 1;
      }
      if (next == 0) {
        next = i + 1;
        best = lexicon_.unknown_weight() + places_[next].score;
      }
      places_[i].score = best;
      places_[i].next = static_cast<std::uint32_t>(next);
    }
  }

  // Single letters and digits that follow each other are one word.
  void emit_words(const char* begin, std::vector<std::size_t>& word_ends) const {
    const auto end_at = [&](std::size_t i) {
      word_ends.push_back(static_cast<std::size_t>(places_[i].at - begin));
    };
    const std::size_t count = places_.size() - 1;
    bool pending = false;
    for (std::size_t i = 0; i < count; i = places_[i].next) {
      const std::size_t next = places_[i].next;
      if (next == i + 1 && places_[i].is_alphanumeric) {
        pending = true;
        continue;
      }
      if (pending) end_at(i);
      pending = false;
      end_at(next);
    }
    if (pending) end_at(count);
  }

  const Lexicon& lexicon_;
  std::vector<Place> places_;
};

}  // namespace tupelo
