#include "model/position/option_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <stdexcept>

#include "model/position/spelling.h"

namespace tupelo {
namespace {

std::string joined(const std::vector<std::string>& values, const char* separator) {
  std::string text;
  for (const std::string& value : values) {
    text += (text.empty() ? "" : separator) + value;
  }
  return text;
}

template <typename Number>
bool parse_number(const std::string& text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

template <typename Number>
std::string shortest_text(Number value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), end);
}

std::string valid_values(const PositionOptionKind& kind) {
  if (!kind.values.empty()) {
    return joined(kind.values, "|");
  }
  if (!kind.valid.empty()) {
    return kind.valid;
  }
  const std::string number = (kind.real ? "a number > " : "an integer >= ") +
                             std::to_string(kind.minimum) +
                             " and <= " + std::to_string(kind.maximum);
  double value = 0;
  return parse_number(kind.default_value, value) ? number : kind.default_value + "|" + number;
}

std::string checked_value(const std::string& owner, const PositionOptionKind& kind,
                          const std::string& value) {
  const auto reject = [&] {
    throw std::invalid_argument("position encoding " + owner + ": option " + kind.name + "=" +
                                value + " is not valid" + spelling_hint(value, kind.values) +
                                "; valid: " + valid_values(kind));
  };
  if (value == kind.default_value) {
    return value;
  }
  if (!kind.values.empty()) {
    if (std::find(kind.values.begin(), kind.values.end(), value) == kind.values.end()) {
      reject();
    }
    return value;
  }
  if (kind.real) {
    double number = 0;
    if (!parse_number(value, number) || !std::isfinite(number) ||
        !(number > static_cast<double>(kind.minimum)) ||
        number > static_cast<double>(kind.maximum)) {
      reject();
    }
    return shortest_text(number);
  }
  std::int64_t number = 0;
  if (!parse_number(value, number) || number < kind.minimum || number > kind.maximum) {
    reject();
  }
  return shortest_text(number);
}

[[noreturn]] void reject_unknown(const std::string& owner, const std::string& name,
                                 const std::vector<PositionOptionKind>& kinds) {
  std::vector<std::string> names;
  for (const PositionOptionKind& kind : kinds) {
    names.push_back(kind.name);
  }
  throw std::invalid_argument("position encoding " + owner + " has no option '" + name + "'" +
                              spelling_hint(name, names) +
                              "; it has: " + (names.empty() ? "none" : comma_separated(names)));
}

}  // namespace

OptionReader::OptionReader(const std::string& owner, const std::vector<PositionOptionKind>& kinds,
                           const PositionOptions& given)
    : owner_(owner) {
  for (const PositionOptionKind& kind : kinds) {
    values_.emplace_back(kind.name, kind.default_value);
    defaults_[kind.name] = kind.default_value;
  }
  std::set<std::string> seen;
  for (const auto& [name, value] : given) {
    const auto kind =
        std::find_if(kinds.begin(), kinds.end(),
                     [&name = name](const auto& candidate) { return candidate.name == name; });
    if (kind == kinds.end()) {
      reject_unknown(owner, name, kinds);
    }
    if (!seen.insert(name).second) {
      throw std::invalid_argument("position encoding " + owner + ": option " + name +
                                  " is given twice");
    }
    values_[static_cast<std::size_t>(kind - kinds.begin())].second =
        checked_value(owner, *kind, value);
  }
}

const std::string& OptionReader::text(const std::string& name) const {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [&name](const auto& value) { return value.first == name; });
  if (found == values_.end()) {
    throw std::logic_error("option " + name + " was never declared");
  }
  return found->second;
}

bool OptionReader::flag(const std::string& name) const { return text(name) == "true"; }

std::int64_t OptionReader::integer(const std::string& name, std::int64_t fallback) const {
  std::int64_t value = fallback;
  return parse_number(text(name), value) ? value : fallback;
}

double OptionReader::number(const std::string& name, double fallback) const {
  double value = fallback;
  return parse_number(text(name), value) ? value : fallback;
}

void OptionReader::needs(const std::string& name, const std::string& other,
                         const std::vector<std::string>& values) const {
  const std::string& setting = text(other);
  const bool holds = std::find(values.begin(), values.end(), setting) != values.end();
  if (holds || text(name) == defaults_.at(name)) {
    return;
  }
  throw std::invalid_argument("position encoding " + owner_ + ": option " + name + "=" +
                              text(name) + " has no effect with " + other + "=" + setting +
                              "; it belongs to " + other + "=" + joined(values, "|"));
}

PositionOptions OptionReader::canonical() const {
  PositionOptions options;
  for (const auto& value : values_) {
    if (value.second != defaults_.at(value.first)) {
      options.push_back(value);
    }
  }
  return options;
}

std::string option_help_text(const PositionOptionKind& kind) {
  return kind.name + "=" + valid_values(kind) + " (" + kind.default_value + "): " + kind.meaning;
}

}  // namespace tupelo
