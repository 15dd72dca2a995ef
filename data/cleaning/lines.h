// The lines of a text.
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

}  // namespace tupelo
