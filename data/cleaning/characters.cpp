#include "data/cleaning/characters.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <algorithm>
#include <array>
#include <utility>

#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

struct Scripts {
  std::string_view language;
  std::array<UScriptCode, 3> scripts;
};

constexpr UScriptCode kNone = USCRIPT_INVALID_CODE;
constexpr auto kScripts = std::to_array<Scripts>({
    {"zh", {USCRIPT_HAN, USCRIPT_BOPOMOFO, kNone}},
    {"ja", {USCRIPT_HAN, USCRIPT_HIRAGANA, USCRIPT_KATAKANA}},
    {"ko", {USCRIPT_HANGUL, USCRIPT_HAN, kNone}},
    {"ru", {USCRIPT_CYRILLIC, kNone, kNone}},
    {"uk", {USCRIPT_CYRILLIC, kNone, kNone}},
    {"bg", {USCRIPT_CYRILLIC, kNone, kNone}},
    {"sr", {USCRIPT_CYRILLIC, kNone, kNone}},
    {"el", {USCRIPT_GREEK, kNone, kNone}},
    {"he", {USCRIPT_HEBREW, kNone, kNone}},
    {"ar", {USCRIPT_ARABIC, kNone, kNone}},
    {"fa", {USCRIPT_ARABIC, kNone, kNone}},
    {"ur", {USCRIPT_ARABIC, kNone, kNone}},
    {"hi", {USCRIPT_DEVANAGARI, kNone, kNone}},
    {"th", {USCRIPT_THAI, kNone, kNone}},
    {"en", {kNone, kNone, kNone}},
    {"fr", {kNone, kNone, kNone}},
    {"de", {kNone, kNone, kNone}},
    {"es", {kNone, kNone, kNone}},
    {"it", {kNone, kNone, kNone}},
    {"pt", {kNone, kNone, kNone}},
    {"vi", {kNone, kNone, kNone}},
});

const Scripts* scripts_of(const std::string& language) {
  const std::string_view primary =
      std::string_view(language).substr(0, language.find_first_of("-_"));
  const auto found = std::find_if(kScripts.begin(), kScripts.end(), [&](const Scripts& scripts) {
    return scripts.language == primary;
  });
  return found == kScripts.end() ? nullptr : &*found;
}

bool is_ascii_letter(char32_t code) { return (code | 0x20) >= 'a' && (code | 0x20) <= 'z'; }

bool is_common_han(char32_t code) { return code >= 0x4E00 && code <= 0x9FFF; }

UScriptCode script_of(char32_t code) {
  UErrorCode status = U_ZERO_ERROR;
  return uscript_getScript(static_cast<UChar32>(code), &status);
}

bool is_at_home(UScriptCode script, const Scripts& scripts) {
  if (script == USCRIPT_LATIN || script == USCRIPT_COMMON || script == USCRIPT_INHERITED)
    return true;
  return std::find(scripts.scripts.begin(), scripts.scripts.end(), script) != scripts.scripts.end();
}

bool is_space(char32_t code) {
  return code <= ' ' || (code >= 0x80 && u_isUWhiteSpace(static_cast<UChar32>(code)) != 0);
}

template <typename Visit>
void for_each_visible(std::string_view text, Visit visit) {
  const char* at = text.data();
  for (const char* const end = at + text.size(); at < end;) {
    const Utf8Character character = read_utf8(at, end);
    at += character.bytes;
    if (!is_space(character.code_point)) visit(character.code_point);
  }
}

void count_letter(char32_t code, const Scripts* scripts, CharacterCounts& counts) {
  ++counts.letters;
  const UScriptCode script = is_common_han(code) ? USCRIPT_HAN : script_of(code);
  counts.han += script == USCRIPT_HAN;
  counts.foreign += scripts != nullptr && !is_at_home(script, *scripts);
}

}  // namespace

bool is_noise(char32_t code) {
  if (code < 0x20) return code != '\n' && code != '\t';
  if (code < 0x7F || is_common_han(code)) return false;
  if (code == 0x200C || code == 0x200D || code == kReplacementCharacter) {
    return code == kReplacementCharacter;
  }
  // Tags make up flags of emoji.
  if (code >= 0xE0020 && code <= 0xE007F) return false;
  const auto kind = u_charType(static_cast<UChar32>(code));
  const bool is_nonsense = (code & 0xFFFE) == 0xFFFE || (code >= 0xFDD0 && code <= 0xFDEF);
  return kind == U_CONTROL_CHAR || kind == U_FORMAT_CHAR || kind == U_PRIVATE_USE_CHAR ||
         is_nonsense;
}

CharacterCounts count_characters(std::string_view text, const std::string& language) {
  const Scripts* const scripts = scripts_of(language);
  CharacterCounts counts;
  for_each_visible(text, [&](char32_t code) {
    ++counts.characters;
    if (is_ascii_letter(code)) {
      ++counts.letters;
    } else if (code >= '0' && code <= '9') {
      ++counts.digits;
    } else if (is_common_han(code)) {
      count_letter(code, scripts, counts);
    } else if (code >= 0x80 && u_isalpha(static_cast<UChar32>(code)) != 0) {
      count_letter(code, scripts, counts);
    } else if (code >= 0x80 && u_isdigit(static_cast<UChar32>(code)) != 0) {
      ++counts.digits;
    }
  });
  return counts;
}

std::uint64_t count_visible_characters(std::string_view text) {
  std::uint64_t count = 0;
  for_each_visible(text, [&](char32_t) { ++count; });
  return count;
}

}  // namespace tupelo
