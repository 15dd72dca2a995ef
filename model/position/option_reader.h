// Options of an encoding, checked against what it declares.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/position/position_option.h"

namespace tupelo {

// Every declared option has a value: the given one or its default.
class OptionReader {
 public:
  // Throws std::invalid_argument that names `owner` (the encoding), the option or value at fault
  // and what is valid: an unknown option, one given twice, a value outside its list, no number, too
  // small a number.
  OptionReader(const std::string& owner, const std::vector<PositionOptionKind>& kinds,
               const PositionOptions& given);

  const std::string& text(const std::string& name) const;
  bool flag(const std::string& name) const;  // an option whose values are true and false
  // An integer option; `fallback` when its value is a word (the default, such as "longest").
  std::int64_t integer(const std::string& name, std::int64_t fallback = 0) const;
  // The same for an option with real = true.
  double number(const std::string& name, double fallback = 0.0) const;

  // Throws std::invalid_argument when option `name` differs from its default although `other` has
  // none of `values`, where it would have no effect.
  void needs(const std::string& name, const std::string& other,
             const std::vector<std::string>& values) const;

  // The options that differ from their defaults, in declared order, numbers in their shortest form.
  PositionOptions canonical() const;

 private:
  std::string owner_;
  PositionOptions values_;  // in declared order
  std::map<std::string, std::string> defaults_;
};

// "pp=relative|dot|both|none (relative): ..."
std::string option_help_text(const PositionOptionKind& kind);

}  // namespace tupelo
