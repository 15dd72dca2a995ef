#include "data/tokenizer/utf8.h"

#include <algorithm>

namespace tupelo {
namespace {

// What may follow a lead byte: the range of the second byte excludes overlong forms, surrogates and
// everything beyond U+10FFFF, so that no check is needed afterwards.
struct LeadByte {
  std::uint32_t length;  // 0: no lead byte
  unsigned char second_low, second_high;
};

LeadByte classify(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead >= 0xF1 && lead <= 0xF3) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Character read_multibyte(const char* at, const char* end) {
  const auto byte = [&](std::ptrdiff_t i) { return static_cast<unsigned char>(at[i]); };
  const LeadByte lead = classify(byte(0));
  if (lead.length == 0) return {kReplacementCharacter, 1};
  char32_t code_point = byte(0) & (0x7Fu >> lead.length);
  for (std::uint32_t i = 1; i < lead.length; ++i) {
    const unsigned char low = i == 1 ? lead.second_low : 0x80;
    const unsigned char high = i == 1 ? lead.second_high : 0xBF;
    if (at + i == end || byte(i) < low || byte(i) > high) return {kReplacementCharacter, i};
    code_point = code_point << 6 | (byte(i) & 0x3Fu);
  }
  return {code_point, lead.length};
}

std::uint32_t write_utf8(char32_t code_point, char* to) {
  const std::uint32_t length = code_point < 0x80      ? 1
                               : code_point < 0x800   ? 2
                               : code_point < 0x10000 ? 3
                                                      : 4;
  for (std::uint32_t i = length - 1; i > 0; --i) {
    to[i] = static_cast<char>(0x80 | (code_point & 0x3F));
    code_point >>= 6;
  }
  constexpr unsigned char kLeadMarks[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
  to[0] = static_cast<char>(kLeadMarks[length] | code_point);
  return length;
}

std::string to_utf8(char32_t code_point) {
  char bytes[kMaxUtf8Bytes];
  return std::string(bytes, write_utf8(code_point, bytes));
}

bool is_valid_utf8(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    const Utf8Character character = read_utf8(at, end);
    const bool really_replacement =
        character.bytes == 3 && std::string_view(at, 3) == "\xEF\xBF\xBD";
    if (character.code_point == kReplacementCharacter && !really_replacement) return false;
    at += character.bytes;
  }
  return true;
}

std::string well_formed(std::string_view text) {
  std::string repaired;
  const char* at = text.data();
  for (const char* const end = at + text.size(); at != end;) {
    const Utf8Character character = read_utf8(at, end);
    repaired += to_utf8(character.code_point);
    at += character.bytes;
  }
  return repaired;
}

}  // namespace tupelo
