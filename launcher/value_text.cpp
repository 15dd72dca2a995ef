#include "launcher/value_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace tupelo {
namespace {

[[noreturn]] void reject(const std::string& text, const std::string& expected) {
  throw std::invalid_argument("'" + text + "' is not " + expected);
}

// Parses the whole of `text` as a finite number; false when it is anything else.
bool whole_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

bool strip_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

double take_unit(std::string_view& text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {{
      {"KiB", 1024.0},
      {"MiB", 1024.0 * 1024.0},
      {"GiB", 1024.0 * 1024.0 * 1024.0},
      {"k", 1e3},
      {"M", 1e6},
      {"G", 1e9},
  }};
  for (const auto& [suffix, factor] : kUnits) {
    if (strip_suffix(text, suffix)) return factor;
  }
  return 1.0;
}

}  // namespace

std::int64_t parse_integer(const std::string& text, std::int64_t least, std::int64_t most) {
  std::string expected = "a whole number";
  expected += most == INT64_MAX ? " of at least " + std::to_string(least)
                                : " from " + std::to_string(least) + " to " + std::to_string(most);
  std::int64_t exact = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exact);
  if (error != std::errc() || end != text.data() + text.size()) {
    constexpr double kExactDoubles = 9007199254740992.0;  // 2^53
    std::string_view digits = text;
    const double unit = take_unit(digits);
    double value = 0;
    if (!whole_number(digits, value)) reject(text, expected);
    value *= unit;
    if (value != std::floor(value) || std::abs(value) > kExactDoubles) reject(text, expected);
    exact = static_cast<std::int64_t>(value);
  }
  if (exact < least || exact > most) reject(text, expected);
  return exact;
}

double parse_number(const std::string& text, double least, double most) {
  const std::string expected = "a number from " + number_text(least) + " to " + number_text(most);
  std::string_view digits = text;
  const bool percent = strip_suffix(digits, "%");
  double value = 0;
  if (!whole_number(digits, value)) reject(text, expected);
  if (percent) value /= 100.0;
  if (value < least || value > most) reject(text, expected);
  return value;
}

Duration parse_duration(const std::string& text) {
  constexpr double kMost = 9007199254740992.0;  // 2^53
  std::string_view digits = text;
  for (const std::string_view unit : {"epochs", "epoch", "e"}) {
    if (!strip_suffix(digits, unit)) continue;
    strip_suffix(digits, " ");
    double value = 0;
    if (whole_number(digits, value) && value >= 0 && value <= kMost) return {value, true};
    break;
  }
  try {
    return {static_cast<double>(parse_integer(text, 0, static_cast<std::int64_t>(kMost))), false};
  } catch (const std::invalid_argument&) {
    reject(text, "a number of steps such as 2000, or of epochs such as 2e or 0.5 epochs");
  }
}

double parse_time_span(const std::string& text) {
  constexpr std::array<std::pair<char, std::int64_t>, 4> kUnits = {
      {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}}};
  constexpr std::size_t kMostDigits = 9;
  if (text == "0") return 0;
  std::int64_t seconds = 0;
  std::size_t at = 0;
  for (const auto& [unit, length] : kUnits) {
    const std::size_t end = text.find(unit, at);
    if (end == std::string::npos) continue;
    const std::string digits = text.substr(at, end - at);
    if (digits.empty() || digits.size() > kMostDigits ||
        digits.find_first_not_of("0123456789") != std::string::npos) {
      break;
    }
    seconds += std::stoll(digits) * length;
    at = end + 1;
  }
  if (at != text.size() || seconds == 0) {
    reject(text, "a time such as 6h30m, 1d12h, 90m or 45s, nor 0 for none");
  }
  return static_cast<double>(seconds);
}

bool parse_flag(const std::string& text) {
  if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
  if (text == "false" || text == "no" || text == "off" || text == "0") return false;
  reject(text, "true or false");
}

std::string number_text(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  (void)error;  // 32 characters hold every double
  return std::string(buffer.data(), end);
}

std::string hex_text(std::uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; value >>= 4) text[i] = kDigits[value & 15];
  return text;
}

}  // namespace tupelo
