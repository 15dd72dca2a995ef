// Text to words, as the pre-tokenizer of byte-level BPE sees them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/byte_level_tables.h"
#include "data/tokenizer/utf8.h"

namespace tupelo {

// One look-up per character. Immutable after construction. 1.1 MB, of which a text touches only its
// own scripts' part.
class ByteLevelClasses {
 public:
  using CharacterClass = byte_level_tables::CharacterClass;

  ByteLevelClasses();
  // `code_point` <= U+10FFFF.
  CharacterClass operator[](char32_t code_point) const { return classes_[code_point]; }

 private:
  std::vector<CharacterClass> classes_;
};

// What is split of `text`: valid UTF-8, begun by a space if asked. Held by `copy` where it differs.
std::string_view text_to_split(std::string_view text, bool add_prefix_space, std::string& copy);

// Bytes of the English ending ('s 't 're 've 'm 'll 'd) that `at` begins with, or 0.
std::size_t contraction_bytes(const char* at, const char* end);

// Calls sink(word) for each word, in order; together they are the text. A word is an English ending
// behind an apostrophe, or a run of letters, of numbers or of symbols, each with the one space
// before it, or a run of white space. The last white space before something else is not part of
// the run. `text` must be valid UTF-8.
template <class Sink>
void split_byte_level(const ByteLevelClasses& classes, std::string_view text, Sink&& sink) {
  using CharacterClass = ByteLevelClasses::CharacterClass;
  const char* const end = text.data() + text.size();
  const auto emit = [&](const char* from, const char* to) {
    sink(std::string_view(from, static_cast<std::size_t>(to - from)));
  };
  for (const char* word = text.data(); word != end;) {
    if (*word == '\'') {
      if (const std::size_t bytes = contraction_bytes(word, end); bytes != 0) {
        emit(word, word + bytes);
        word += bytes;
        continue;
      }
    }
    Utf8Character character = read_utf8(word, end);
    CharacterClass run = classes[character.code_point];
    const char* at = word + character.bytes;
    if (*word == ' ' && at != end) {
      character = read_utf8(at, end);
      const CharacterClass behind = classes[character.code_point];
      if (behind != CharacterClass::kSpace) {
        run = behind;
        at += character.bytes;
      }
    }
    const char* last = word;  // where the last character of the run begins
    while (at != end) {
      character = read_utf8(at, end);
      if (classes[character.code_point] != run) break;
      last = at;
      at += character.bytes;
    }
    if (run == CharacterClass::kSpace && at != end && last != word) at = last;
    emit(word, at);
    word = at;
  }
}

}  // namespace tupelo
