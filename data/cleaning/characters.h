// What kinds of characters a text has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tupelo {

// Those that take no part in a text: controls, invisible formatting (not the joiners of emoji and
// of Indic and Arabic scripts), private use, what is no character, U+FFFD.
bool is_noise(char32_t code_point);

struct CharacterCounts {
  std::uint64_t characters = 0;  // all but white space
  std::uint64_t letters = 0;     // ideographs and syllables are letters
  std::uint64_t digits = 0;
  std::uint64_t han = 0;
  std::uint64_t foreign = 0;  // letters of scripts that the language is not written in
};

// Valid UTF-8. `language`: a tag whose beginning names the scripts: zh Han, ja Han and kana, ko
// Hangul and Han, ru uk bg Cyrillic, and so on; Latin letters are at home everywhere. For a tag
// that is not known no letter is foreign.
CharacterCounts count_characters(std::string_view text, const std::string& language);

std::uint64_t count_visible_characters(std::string_view text);

}  // namespace tupelo
