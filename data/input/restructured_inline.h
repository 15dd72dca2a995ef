// Inline markup of reStructuredText.
#pragma once

#include <string>
#include <string_view>

namespace tupelo {

// What may stand inside a name: letters, digits, - _ : + . and all beyond ASCII.
bool is_rst_word(char c);

// The text of a paragraph; markup that is not ended stays.
std::string without_inline_markup(std::string_view text);

}  // namespace tupelo
