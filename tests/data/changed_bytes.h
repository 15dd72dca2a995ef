// What fuzz targets make of a sound file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tupelo::testing {

// Each four bytes of `data` are a place (three) and its new value, or where `file` is cut short.
inline std::string changed(std::string file, const std::uint8_t* data, std::size_t size) {
  for (std::size_t i = 0; i + 4 <= size; i += 4) {
    const std::size_t place = data[i] | data[i + 1] << 8 | data[i + 2] << 16;
    if (data[i + 2] >= 0xF0) {
      file.resize(std::min<std::size_t>(file.size(), place & 0xFFFF));
    } else if (!file.empty()) {
      file[place % file.size()] = static_cast<char>(data[i + 3]);
    }
  }
  return file;
}

}  // namespace tupelo::testing
