// Text whose words somebody else has set apart by spaces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tupelo {

// `segmented` as it is written without segmentation; `word_ends` gets where its words end (bytes of
// the result, rising, the last one its size). A run of spaces (U+0020) ends a word. It is left out
// at the ends of lines and where one of its neighbours belongs to a script without spaces
// (ideographs, kana, bopomofo, CJK punctuation, full-width forms); elsewhere it stays, a word
// itself, as does each line break.
std::string join_presegmented(std::string_view segmented, std::vector<std::size_t>& word_ends);

}  // namespace tupelo
