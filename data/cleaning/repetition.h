// How much a text repeats itself.
#pragma once

#include <string_view>

namespace tupelo {

// Share of lines that equal an earlier one, by bytes; 0 for less than four lines.
double repeated_share_of_lines(std::string_view text);

// Share of runs of ten characters that equal an earlier one, among the first 100,000 characters;
// 0 for less than 200 characters.
double repeated_share_of_grams(std::string_view text);

}  // namespace tupelo
