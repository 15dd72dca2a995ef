// Markup that was left in plain text.
#pragma once

#include <string>
#include <string_view>

namespace tupelo {

// Without the tags of HTML's elements and comments, and with characters for the common entities
// and numeric references; tags of blocks and <br> become spaces. Other angle brackets stay.
std::string without_html(std::string_view line);

}  // namespace tupelo
