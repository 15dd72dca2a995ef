// jieba's dictionary, from the PyPI package.
#pragma once

#include <filesystem>

namespace tupelo {

// The dictionary of jieba 0.42.1 (MIT licence; 349,046 words) in the user's cache folder
// ($XDG_CACHE_HOME or ~/.cache), put there by `python3 -m pip download` when it is missing. Its
// SHA-256 is compared each time. Throws std::invalid_argument that says what to do when it cannot
// be had, std::system_error when the cache cannot be written.
std::filesystem::path jieba_dictionary();

}  // namespace tupelo
