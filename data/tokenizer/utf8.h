// UTF-8, one character at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tupelo {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;
inline constexpr std::uint32_t kMaxUtf8Bytes = 4;

struct Utf8Character {
  char32_t code_point;
  std::uint32_t bytes;  // read from the text
};

// The character at `at`, which must lie before `end`. Anything that is not well-formed UTF-8 is
// U+FFFD, one per maximal subpart as Unicode (3.9, U+FFFD substitution) and the WHATWG decoder have
// it: the longest beginning of a well-formed sequence, or else one byte.
Utf8Character read_multibyte(const char* at, const char* end);

inline Utf8Character read_utf8(const char* at, const char* end) {
  const auto lead = static_cast<unsigned char>(*at);
  if (lead < 0x80) return {lead, 1};
  if (lead >= 0xE1 && lead <= 0xEC && end - at >= 3) {  // most of Chinese
    const auto second = static_cast<unsigned char>(at[1]) ^ 0x80u;
    const auto third = static_cast<unsigned char>(at[2]) ^ 0x80u;
    if ((second | third) < 0x40) {
      return {static_cast<char32_t>((lead & 0x0Fu) << 12 | second << 6 | third), 3};
    }
  }
  return read_multibyte(at, end);
}

// Writes 1 to 4 bytes, returns how many.
std::uint32_t write_utf8(char32_t code_point, char* to);
std::string to_utf8(char32_t code_point);

bool is_valid_utf8(std::string_view text);

// `text` with U+FFFD for what is not well-formed, as read_utf8 has it.
std::string well_formed(std::string_view text);

}  // namespace tupelo
