#include "data/segmenter/word_alignment.h"

#include <algorithm>

#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

bool has_ideograph(std::string_view text) {
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const Utf8Character character = read_utf8(at, end);
    if (is_ideograph(character.code_point)) return true;
    at += character.bytes;
  }
  return false;
}

// The units of a text's tokens, one after another.
class Units {
 public:
  Units(std::string_view text, std::span<const TextSpan> spans,
        std::span<const std::uint8_t> word_start)
      : text_(text), spans_(spans), word_start_(word_start) {}

  // The token behind the unit that begins with token `first`.
  std::size_t end_of(std::size_t first) {
    if (first >= word_end_) enter_word(first);
    if (whole_) return word_end_;
    std::size_t end = first + 1;
    while (end < word_end_ && !begins_character(end)) ++end;
    return end;
  }

 private:
  // Flags are changed behind us, so the end of a word must be known before.
  void enter_word(std::size_t first) {
    word_end_ = first + 1;
    while (word_end_ < spans_.size() && word_start_[word_end_] == 0) ++word_end_;
    const std::size_t begin = spans_[first].begin;
    whole_ = !has_ideograph(text_.substr(begin, spans_[word_end_ - 1].end - begin));
  }

  bool begins_character(std::size_t token) const {
    const std::size_t at = spans_[token].begin;
    if (spans_[token] == spans_[token - 1] || at >= text_.size()) return false;
    return (static_cast<unsigned char>(text_[at]) & 0xC0) != 0x80;
  }

  std::string_view text_;
  std::span<const TextSpan> spans_;
  std::span<const std::uint8_t> word_start_;
  std::size_t word_end_ = 0;
  bool whole_ = true;
};

}  // namespace

bool is_ideograph(char32_t c) {
  return (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x3FFFF);
}

void align_word_starts(std::string_view text, const std::vector<std::size_t>& word_ends,
                       std::span<const TextSpan> spans, std::span<std::uint8_t> word_start) {
  constexpr std::size_t kNoWord = ~std::size_t{0};
  Units units(text, spans, word_start);
  std::size_t word = 0, open_word = kNoWord;
  for (std::size_t first = 0; first < spans.size();) {
    const std::size_t end = units.end_of(first);
    const std::size_t last_byte = spans[end - 1].end;
    // Some tokenizers put the space before a word into its token.
    const std::size_t begin =
        std::min(text.find_first_not_of(kWhiteSpace, spans[first].begin), last_byte);
    while (word < word_ends.size() && word_ends[word] <= begin) ++word;
    const bool inside =
        begin < last_byte && word < word_ends.size() && last_byte <= word_ends[word];
    if (inside || begin < last_byte) word_start[first] = inside && word == open_word ? 0 : 1;
    for (std::size_t i = first + 1; i < end; ++i) word_start[i] = 0;
    open_word = inside ? word : kNoWord;
    first = end;
  }
}

}  // namespace tupelo
