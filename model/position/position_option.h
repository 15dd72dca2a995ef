// Options of position encodings as data: what an encoding declares and what a plan says.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tupelo {

// Options of a plan entry, e.g. {"pp","dot"},{"scale","joint"}, in the order written.
using PositionOptions = std::vector<std::pair<std::string, std::string>>;

// One option of an encoding.
struct PositionOptionKind {
  std::string name;
  std::string default_value;
  std::vector<std::string> values;  // what is valid; empty: a number, or the default
  std::string meaning;
  std::int64_t minimum = 1;  // of numbers
  bool real = false;         // numbers may have a fraction, and must exceed the minimum
  std::int64_t maximum = std::int64_t{1} << 20;  // of numbers
  // What is valid, for people, where the range does not say it all: "an odd integer from 3 to
  // 1023".
  std::string valid = {};
};

}  // namespace tupelo
