// Help for a misspelt word of a position setting.
#pragma once

#include <string>
#include <vector>

namespace tupelo {

// " (did you mean 'x'?)" for the first candidate that begins with `word`, else for the nearest one
// in edit distance, whatever the case; "" when none is near.
std::string spelling_hint(const std::string& word, const std::vector<std::string>& candidates);

// "a, b, c"
std::string comma_separated(const std::vector<std::string>& words);

}  // namespace tupelo
