// Which characters run together in the words of byte-level BPE, as a generated table.
// Source: scripts/generate_unicode_tables.py, which reads it off the PyPI package `tokenizers`; the
// version in the name of the generated file is that package's.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tupelo::byte_level_tables {

enum class CharacterClass : std::uint8_t {
  kSymbol,  // all that is none of the others
  kLetter,
  kNumber,
  kSpace,
};

struct ClassRange {
  char32_t first, last;
  CharacterClass character_class;
};

// Enters every fingerprint: other tables, other ids.
std::string_view version();

// Sorted by code point; what lies in no range is a symbol.
std::span<const ClassRange> class_ranges();

}  // namespace tupelo::byte_level_tables
