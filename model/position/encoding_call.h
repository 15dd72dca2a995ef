// "NAME" and "NAME(option=value,...)": how settings name an encoding.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/position/position_option.h"

namespace tupelo {

struct EncodingCall {
  std::string name;
  PositionOptions options;  // as written, not checked
};

// Malformed text goes to `reject`, which must throw, as the end of a sentence about the text: "has
// unbalanced parentheses". So do options of "none".
using RejectCall = std::function<void(const std::string& what)>;
EncodingCall parse_encoding_call(const std::string& text, const RejectCall& reject);

std::string encoding_call_text(const std::string& name, const PositionOptions& options);

// Pieces between `separator`s outside parentheses, trimmed.
std::vector<std::string> split_outside_parentheses(const std::string& text, char separator);

// Without white space at both ends.
std::string trimmed(const std::string& text);

}  // namespace tupelo
