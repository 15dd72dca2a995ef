// The 256 characters by which byte-level BPE writes bytes in its files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tupelo {

// Printable bytes of Latin-1 stand for themselves; the others, in order, are U+0100, U+0101, ...
// (space is "Ġ", U+0120), so that no written token holds white space. Source: GPT-2's encoder.
char32_t byte_symbol(std::uint8_t byte);

// `bytes` as vocab.json and merges.txt write them.
std::string written_form(std::string_view bytes);

// The bytes behind a written token, or nothing when a character of it stands for no byte.
std::optional<std::string> bytes_of(std::string_view written);

}  // namespace tupelo
