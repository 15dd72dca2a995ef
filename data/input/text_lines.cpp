#include "data/input/text_lines.h"

#include <algorithm>
#include <utility>

#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

constexpr char32_t kNoBreakSpace = 0xA0;
constexpr std::string_view kBlanks = " \t\r\v\f";

bool is_within(char32_t code, char32_t first, char32_t last) {
  return code >= first && code <= last;
}

// Dashes, quotation marks and dots that Chinese shares with other scripts.
bool is_shared_punctuation(char32_t code) {
  return is_within(code, 0x2014, 0x2015) || is_within(code, 0x2018, 0x201D) || code == 0x2026;
}

char32_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return read_utf8(text.data() + at, text.data() + text.size()).code_point;
}

bool joins_without_space(char32_t left, char32_t right) {
  const bool left_wide = is_written_without_spaces(left);
  const bool right_wide = is_written_without_spaces(right);
  return (left_wide && (right_wide || is_shared_punctuation(right))) ||
         (right_wide && is_shared_punctuation(left));
}

}  // namespace

bool is_written_without_spaces(char32_t code) {
  return is_within(code, 0x2E80, 0x9FFF) || is_within(code, 0xF900, 0xFAFF) ||
         is_within(code, 0xFE30, 0xFE4F) || is_within(code, 0xFF00, 0xFFEF) ||
         is_within(code, 0x20000, 0x3FFFF);
}

void TextLines::close_gap(char32_t next) {
  if (!line_.empty() && gap_ != Gap::kNone &&
      !(gap_ == Gap::kLineBreak && joins_without_space(last_character(line_), next))) {
    line_ += ' ';
  }
  gap_ = Gap::kNone;
}

void TextLines::append(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const Utf8Character character = read_utf8(at, end);
    if (character.code_point == '\n') {
      gap_ = Gap::kLineBreak;
    } else if (character.code_point == kNoBreakSpace ||
               (character.bytes == 1 && kBlanks.find(*at) != std::string_view::npos)) {
      gap_ = std::max(gap_, Gap::kSpace);
    } else {
      close_gap(character.code_point);
      line_.append(at, character.bytes);
    }
    at += character.bytes;
  }
}

void TextLines::append_preformatted(std::string_view text) {
  for (;;) {
    const std::size_t newline = text.find('\n');
    const std::string_view part = text.substr(0, newline);
    if (!part.empty()) {
      close_gap(' ');
      line_ += part;
    }
    if (newline == std::string_view::npos) return;
    end_line();
    text.remove_prefix(newline + 1);
  }
}

void TextLines::end_line() {
  gap_ = Gap::kNone;
  const std::size_t last = line_.find_last_not_of(kBlanks);
  if (last != std::string::npos) {
    if (!lines_.empty()) lines_ += '\n';
    lines_.append(line_, 0, last + 1);
  }
  line_.clear();
}

std::string TextLines::take() {
  end_line();
  return std::exchange(lines_, {});
}

}  // namespace tupelo
