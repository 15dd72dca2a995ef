// JSON from files that anybody may have written.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tupelo {

enum class JsonNumbers { kIntegersOnly, kAny };

// Parses one JSON object. Throws CorruptCheckpoint, beginning with `where`, for anything but RFC
// 8259 text in UTF-8 and for: another value than an object, a key that occurs twice in one object,
// nesting deeper than 32, a number that is no 64-bit integer (kIntegersOnly), a NUL byte.
nlohmann::json parse_strict_json(std::string_view text, JsonNumbers numbers,
                                 const std::string& where);

}  // namespace tupelo
