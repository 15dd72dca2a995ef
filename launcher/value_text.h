// Numbers as people write them: "64k", "1e6", "15%", "true".
#pragma once

#include <cstdint>
#include <string>

namespace tupelo {

// All throw std::invalid_argument that quotes the text and says what is expected.

// Digits, an integral "1e6", or a suffix k, M, G (powers of 1024 for sizes in bytes are written
// KiB, MiB, GiB). Range is inclusive.
std::int64_t parse_integer(const std::string& text, std::int64_t least, std::int64_t most);
// A finite number, or a percentage "15%". Range is inclusive.
double parse_number(const std::string& text, double least, double most);
// A span of a run: whole steps ("2000"), or epochs: "2e", "0.5 epochs", "1 epoch". At most 2^53.
struct Duration {
  double amount = 0;
  bool in_epochs = false;
};
Duration parse_duration(const std::string& text);
// A time such as "6h30m", "1d12h", "90m" or "45s", units in this order; "0" is none. Seconds.
double parse_time_span(const std::string& text);
bool parse_flag(const std::string& text);

// The shortest text that parses back to exactly `value`.
std::string number_text(double value);
// 16 hexadecimal digits.
std::string hex_text(std::uint64_t value);

}  // namespace tupelo
