// The JSON header of a safetensors file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/safetensors.h"

namespace tupelo {

inline constexpr std::uint64_t kMaximumHeaderBytes = std::uint64_t{16} << 20;

struct SafetensorsEntry {
  std::string name;
  torch::ScalarType dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // bytes from the start of the data section
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their data, which they tile
  std::map<std::string, std::string> metadata;
};

// The header text, padded with spaces to a multiple of 8 bytes. Throws std::invalid_argument as
// write_safetensors() does.
std::string format_safetensors_header(const NamedTensors& tensors,
                                      const std::map<std::string, std::string>& metadata);

// Throws CorruptCheckpoint, naming `file`, unless the entries tile exactly `data_bytes` bytes.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                           const std::string& file);

}  // namespace tupelo
