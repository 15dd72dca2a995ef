#include "data/segmenter/presegmented_text.h"

#include <utility>

#include "data/segmenter/word_alignment.h"
#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

bool stands_without_spaces(char32_t c) {
  return is_ideograph(c) || (c >= 0x3001 && c <= 0x312F) || (c >= 0x31A0 && c <= 0x31BF) ||
         (c >= 0x31F0 && c <= 0x31FF) || (c >= 0xFF01 && c <= 0xFFEF);
}

bool is_line_end(char32_t c) { return c == '\n' || c == '\r'; }

class Joiner {
 public:
  explicit Joiner(std::vector<std::size_t>& word_ends) : word_ends_(word_ends) {}

  void spaces(std::size_t count) { spaces_ += count; }

  void character(char32_t code_point, std::string_view bytes) {
    if (spaces_ > 0) settle_spaces(code_point);
    if (is_line_end(code_point)) end_word();
    text_ += bytes;
    if (is_line_end(code_point)) end_word();
    previous_ = code_point;
  }

  std::string finish() {
    end_word();
    return std::move(text_);
  }

 private:
  void settle_spaces(char32_t next) {
    end_word();
    const bool edge = text_.empty() || is_line_end(previous_) || is_line_end(next);
    if (!edge && !stands_without_spaces(previous_) && !stands_without_spaces(next)) {
      text_.append(spaces_, ' ');
      end_word();
    }
    spaces_ = 0;
  }

  void end_word() {
    const std::size_t last = word_ends_.empty() ? 0 : word_ends_.back();
    if (text_.size() > last) word_ends_.push_back(text_.size());
  }

  std::vector<std::size_t>& word_ends_;
  std::string text_;
  std::size_t spaces_ = 0;
  char32_t previous_ = 0;
};

}  // namespace

std::string join_presegmented(std::string_view segmented, std::vector<std::size_t>& word_ends) {
  word_ends.clear();
  Joiner joiner(word_ends);
  const char* const end = segmented.data() + segmented.size();
  for (const char* at = segmented.data(); at != end;) {
    const Utf8Character character = read_utf8(at, end);
    if (character.code_point == ' ') {
      joiner.spaces(1);
    } else {
      joiner.character(character.code_point, {at, character.bytes});
    }
    at += character.bytes;
  }
  return joiner.finish();
}

}  // namespace tupelo
