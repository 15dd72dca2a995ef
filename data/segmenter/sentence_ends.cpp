#include "data/segmenter/sentence_ends.h"

#include <algorithm>
#include <array>
#include <string>

#include "data/segmenter/word_alignment.h"
#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

// Sorted; without the final full stop, lower case.
constexpr std::array<std::string_view, 44> kAbbreviations = {
    "al",   "approx", "apr", "aug", "ave", "capt", "cf",   "co",  "col", "corp", "dec",
    "dept", "dr",     "e.g", "ed",  "eg",  "eq",   "est",  "etc", "feb", "fig",  "gen",
    "gov",  "i.e",    "ie",  "inc", "jan", "jr",   "lt",   "ltd", "mr",  "mrs",  "ms",
    "mt",   "no",     "nov", "oct", "pp",  "prof", "sept", "sr",  "st",  "vol",  "vs"};
static_assert(std::is_sorted(kAbbreviations.begin(), kAbbreviations.end()));

bool is_wide_end(char32_t c) {
  return c == 0x3002 || c == 0xFF01 || c == 0xFF1F || c == 0xFF61;  // 。！？｡
}
bool is_narrow_end(char32_t c) { return c == '.' || c == '!' || c == '?'; }
bool is_ellipsis(char32_t c) { return c == 0x2026; }
bool is_end_mark(char32_t c) { return is_wide_end(c) || is_narrow_end(c) || is_ellipsis(c); }

bool is_closer(char32_t c) {
  switch (c) {
    case '"':
    case '\'':
    case ')':
    case ']':
    case 0x00BB:  // »
    case 0x2019:  // ’
    case 0x201D:  // ”
    case 0x3009:  // 〉
    case 0x300B:  // 》
    case 0x300D:  // 」
    case 0x300F:  // 』
    case 0x3011:  // 】
    case 0x3015:  // 〕
    case 0xFF09:  // ）
    case 0xFF3D:  // ］
      return true;
    default:
      return false;
  }
}

bool goes_on_behind(char32_t c) {
  return c == ',' || c == ';' || c == ':' || c == 0x3001 || c == 0xFF0C || c == 0xFF1A ||
         c == 0xFF1B;  // 、，：；
}

bool is_lower_letter(char32_t c) { return c >= 'a' && c <= 'z'; }
bool is_letter(char32_t c) { return is_lower_letter(c) || (c >= 'A' && c <= 'Z'); }
bool is_white_space(char32_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || c == 0xA0 || c == 0x3000;
}

class SentenceFinder {
 public:
  SentenceFinder(std::string_view text, std::vector<std::size_t>& ends)
      : text_(text), ends_(ends) {}

  void run() {
    while (at_ < text_.size()) {
      const Utf8Character character = character_at(at_);
      if (is_end_mark(character.code_point)) {
        read_marks();
      } else if (character.code_point == '\n') {
        end_line();
      } else {
        at_ += character.bytes;
      }
    }
    if (begin_ < text_.size()) ends_.push_back(text_.size());
  }

 private:
  Utf8Character character_at(std::size_t at) const {
    return read_utf8(text_.data() + at, text_.data() + text_.size());
  }
  // 0 behind the text's end.
  char32_t code_point_at(std::size_t at) const {
    return at < text_.size() ? character_at(at).code_point : 0;
  }
  std::size_t behind_white_space(std::size_t at) const {
    while (at < text_.size() && is_white_space(code_point_at(at))) at += character_at(at).bytes;
    return at;
  }

  // A run of end marks and what closes behind it.
  void read_marks() {
    const std::size_t first = at_;
    std::size_t marks = 0, ellipses = 0;
    bool wide = false, loud = false;
    for (char32_t c; is_end_mark(c = code_point_at(at_)); at_ += character_at(at_).bytes) {
      ++marks;
      ellipses += is_ellipsis(c) ? 1 : 0;
      wide = wide || is_wide_end(c);
      loud = loud || c == '!' || c == '?';
    }
    while (is_closer(code_point_at(at_))) at_ += character_at(at_).bytes;
    wide = wide || ellipses > 1;
    const bool single_stop = marks == 1 && text_[first] == '.';
    if (wide ? !goes_on_behind(code_point_at(at_))
             : ellipses != marks && ends_narrowly(first, single_stop, loud)) {
      end_sentence();
    }
  }

  bool ends_narrowly(std::size_t first, bool single_stop, bool loud) const {
    const char32_t next = code_point_at(at_);
    if (next == 0) return true;
    if (!is_white_space(next)) return loud && is_ideograph(next);
    if (single_stop && is_abbreviated(first)) return false;
    return !is_lower_letter(code_point_at(behind_white_space(at_)));
  }

  // The word before the full stop at `stop` is one that is often followed by one.
  bool is_abbreviated(std::size_t stop) const {
    constexpr std::size_t kLongest = 16;
    std::size_t begin = stop;
    while (begin > begin_ && stop - begin <= kLongest &&
           (is_letter(static_cast<unsigned char>(text_[begin - 1])) || text_[begin - 1] == '.')) {
      --begin;
    }
    std::string word(text_.substr(begin, stop - begin));
    for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (word.size() == 1) return word != "i";
    const bool initials = word.size() > 2 && word[word.size() - 2] == '.';
    return initials || std::binary_search(kAbbreviations.begin(), kAbbreviations.end(), word);
  }

  void end_line() {
    const std::size_t next = behind_white_space(at_);
    const bool blank_line = std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                       text_.begin() + static_cast<std::ptrdiff_t>(next), '\n') > 1;
    if (!blank_line && is_lower_letter(code_point_at(next))) {
      at_ = next;
    } else {
      end_sentence();
    }
  }

  // With the white space that follows.
  void end_sentence() {
    at_ = behind_white_space(at_);
    // White space alone, at the start of the text, is no sentence.
    if (begin_ == 0 && ends_.empty() && behind_white_space(0) == at_) return;
    ends_.push_back(at_);
    begin_ = at_;
  }

  std::string_view text_;
  std::vector<std::size_t>& ends_;
  std::size_t at_ = 0, begin_ = 0;
};

}  // namespace

void find_sentences(std::string_view text, std::vector<std::size_t>& sentence_ends) {
  SentenceFinder(text, sentence_ends).run();
}

void append_sentence_starts(std::string_view text, const std::vector<std::size_t>& sentence_ends,
                            std::span<const TextSpan> spans,
                            std::vector<std::uint8_t>& sentence_start) {
  std::size_t sentence = 0;
  bool begins = true;
  for (const TextSpan& span : spans) {
    const std::size_t begin = std::min(text.find_first_not_of(kWhiteSpace, span.begin), span.end);
    // A token of white space alone begins none.
    while (begin < span.end && sentence < sentence_ends.size() &&
           sentence_ends[sentence] <= begin) {
      ++sentence;
      begins = true;
    }
    sentence_start.push_back(begins ? 1 : 0);
    begins = false;
  }
}

}  // namespace tupelo
