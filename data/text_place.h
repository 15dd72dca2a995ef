// Where in the input a document begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tupelo {

struct TextSource;

struct TextPlace {
  std::uint64_t source = 0;  // index of its file
  std::uint64_t origin = 0;  // the byte of the file from which `line` counts
  std::uint64_t line = 0;    // from 1; of a catalogue, the number of its entry; 0: the whole file
  bool operator==(const TextPlace&) const = default;
};

// "file:line", counted through the whole file, or "file". Reads the file up to `origin`. Throws
// std::system_error.
std::string text_place(const TextPlace& place, const std::vector<TextSource>& sources);

}  // namespace tupelo
