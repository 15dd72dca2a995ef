// Running text out of marked-up text: lines without stray white space.
#pragma once

#include <string>
#include <string_view>

namespace tupelo {

// East Asian characters that are written without spaces between words: no Hangul.
bool is_written_without_spaces(char32_t code_point);

class TextLines {
 public:
  // Valid UTF-8. White space (ASCII's and the no-break space) becomes one space, and vanishes at
  // the ends of lines and where a line was broken between two Chinese or Japanese characters.
  void append(std::string_view text);
  // Lines and spaces as they are, except at the ends of lines.
  void append_preformatted(std::string_view text);
  // Lines without text are none.
  void end_line();
  bool line_is_empty() const { return line_.empty(); }

  // The lines, joined by "\n".
  std::string take();

 private:
  enum class Gap { kNone, kSpace, kLineBreak };
  void close_gap(char32_t next);

  std::string lines_, line_;
  Gap gap_ = Gap::kNone;
};

}  // namespace tupelo
