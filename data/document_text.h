// What the text of a document is: valid UTF-8, taken out of its JSON where it comes in JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tupelo {

// Bytes that belong to no well-formed character, or are zero.
std::uint64_t count_invalid_bytes(std::string_view text);

// Puts U+FFFD in place of every maximal ill-formed part (as WHATWG's decoder does) and of every
// zero byte. Returns the number of bytes replaced.
std::uint64_t replace_invalid_bytes(std::string& text);

// Takes out the lines that hold such bytes, and adds their number to `dropped_lines`. Returns the
// number of invalid bytes in them.
std::uint64_t drop_invalid_lines(std::string& text, std::uint64_t& dropped_lines);

// The string under `key` of the JSON object that `line` is, where "a.b" is key b of the object
// under a, and "a\.b" a key with a dot; other members may be of any kind. Throws CorpusError that
// says what the line lacks, but not where it stands.
std::string text_of_json_line(std::string_view line, const std::string& key);

// ASCII white space and U+3000, the space of Chinese text, only.
bool is_blank(std::string_view text);

// The hash that decides the split: the first eight bytes of the SHA-256 of the text, the first of
// them the most significant, so that it is the beginning of what sha256sum prints.
class ContentDigest;
std::uint64_t document_hash(std::string_view text, ContentDigest& digest);

}  // namespace tupelo
