// A digest that names a tokenizer.
#pragma once

#include <string>
#include <string_view>

namespace tupelo {

// SHA-256 of `bytes` in lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace tupelo
