#include "model/position/encoding_call.h"

#include <algorithm>

namespace tupelo {
namespace {

PositionOptions parse_options(const std::string& text, const RejectCall& reject) {
  PositionOptions options;
  for (const std::string& piece : split_outside_parentheses(text, ',')) {
    const std::size_t equals = piece.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == piece.size()) {
      reject("has '" + piece + "' where option=value belongs");
    }
    options.emplace_back(trimmed(piece.substr(0, equals)), trimmed(piece.substr(equals + 1)));
  }
  return options;
}

}  // namespace

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  return begin == std::string::npos
             ? ""
             : text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

std::vector<std::string> split_outside_parentheses(const std::string& text, char separator) {
  std::vector<std::string> pieces(1);
  int depth = 0;
  for (const char letter : text) {
    depth += (letter == '(') - (letter == ')');
    if (letter == separator && depth == 0) {
      pieces.emplace_back();
    } else {
      pieces.back() += letter;
    }
  }
  std::transform(pieces.begin(), pieces.end(), pieces.begin(), trimmed);
  return pieces;
}

EncodingCall parse_encoding_call(const std::string& text, const RejectCall& reject) {
  const std::string what = trimmed(text);
  const std::size_t open = what.find('(');
  EncodingCall call{trimmed(what.substr(0, open)), {}};
  if (open != std::string::npos) {
    if (what.back() != ')' || what.find(')') + 1 != what.size() ||
        what.find('(', open + 1) != std::string::npos) {
      reject("has unbalanced parentheses");
    }
    call.options = parse_options(what.substr(open + 1, what.size() - open - 2), reject);
  }
  if (call.name == "none" && !call.options.empty()) {
    reject("gives options to none, which has no options");
  }
  return call;
}

std::string encoding_call_text(const std::string& name, const PositionOptions& options) {
  std::string text;
  for (const auto& [option, value] : options) {
    text += (text.empty() ? "" : ",") + option + "=" + value;
  }
  return name + (text.empty() ? "" : "(" + text + ")");
}

}  // namespace tupelo
