// Configuration files: "[section]", "key = value", "# comment".
#pragma once

#include <string>
#include <vector>

namespace tupelo {

struct ConfigLine {
  std::string name;   // "section.key"
  std::string value;  // without the quotes around it
  int line = 0;       // from 1
};

// What `text` sets, in its order; a byte-order mark at the start is passed over. Throws
// std::invalid_argument that begins with "file:line: " for a line that is none of these and for a
// key that is set twice.
std::vector<ConfigLine> parse_config(const std::string& text, const std::string& file);

}  // namespace tupelo
