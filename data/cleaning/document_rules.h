// The rules that look at one document.
#pragma once

#include <string_view>

namespace tupelo {

// Calls visit(line) for the lines of `text`.
template <typename Visit>
void for_each_line(std::string_view text, Visit visit) {
  for (;;) {
    const std::size_t end = text.find('\n');
    visit(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

// Share of lines that equal an earlier one, by bytes; 0 for less than four lines.
double repeated_share_of_lines(std::string_view text);

// Share of runs of ten characters that equal an earlier one, among the first 100,000 characters;
// 0 for less than 200 characters.
double repeated_share_of_grams(std::string_view text);

}  // namespace tupelo
