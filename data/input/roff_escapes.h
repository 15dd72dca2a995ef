// The escape sequences of roff (groff(7)) inside a line of text.
#pragma once

#include <string>
#include <string_view>

namespace tupelo {

// The text that a line prints. Comments (\" and \#) end it. `continues` becomes true when it ends
// in \c: what follows joins without a space.
std::string without_roff_escapes(std::string_view line, bool& continues);

}  // namespace tupelo
