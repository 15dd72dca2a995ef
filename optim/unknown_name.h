// The message for a name that no table of this room lists.
#pragma once

#include <string>
#include <vector>

namespace tupelo {

// "unknown <kind> '<name>', did you mean '<nearest>'? Valid: a, b, c"; the question only when one
// of `valid` is within a third of its letters.
std::string unknown_name_message(const std::string& kind, const std::string& name,
                                 const std::vector<std::string>& valid);

}  // namespace tupelo
