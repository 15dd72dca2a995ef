#include "model/position/input_encoding.h"

#include <algorithm>
#include <stdexcept>

#include "model/position/encoding_call.h"
#include "model/position/kinds.h"
#include "model/position/option_reader.h"
#include "model/position/spelling.h"

namespace tupelo {
namespace {

std::vector<InputEncodingKind> all_input_kinds() {
  std::vector<InputEncodingKind> kinds = {
      learned_input_kind(),     hierarchical_input_kind(), sinusoidal_input_kind(),
      recursive_input_kind(),   floater_input_kind(),      complex_order_input_kind(),
      convolution_input_kind(),
  };
  for (InputEncodingKind& kind : kinds) {
    for (const PositionOptionKind& option : kind.options) {
      kind.option_help.push_back(option_help_text(option));
    }
  }
  return kinds;
}

const InputEncodingKind& kind_called(const std::string& name) {
  std::vector<std::string> names = {"none"};
  for (const InputEncodingKind& kind : input_encoding_kinds()) {
    if (kind.name == name) {
      return kind;
    }
    names.push_back(kind.name);
  }
  std::string hint = spelling_hint(name, names);
  for (const PositionEncodingKind& kind : position_encoding_kinds()) {
    if (kind.name == name) {
      hint = ", which belongs in attention (position all:" + name + ")";
    }
  }
  throw std::invalid_argument("unknown input position '" + name + "'" + hint +
                              "; valid: " + comma_separated(names));
}

}  // namespace

const std::vector<InputEncodingKind>& input_encoding_kinds() {
  static const std::vector<InputEncodingKind> kinds = all_input_kinds();
  return kinds;
}

InputPosition InputPosition::parse(const std::string& text) {
  const EncodingCall call = parse_encoding_call(text, [&](const std::string& what) {
    throw std::invalid_argument("input position: '" + text + "' " + what);
  });
  InputPosition position;
  if (call.name == position.name) {
    return position;
  }
  const InputEncodingKind& kind = kind_called(call.name);
  position.name = kind.name;
  position.options = OptionReader(input_owner(kind.name), kind.options, call.options).canonical();
  return position;
}

std::string InputPosition::to_string() const { return encoding_call_text(name, options); }

std::shared_ptr<InputEncoding> InputPosition::make(const InputContext& context) const {
  return name == "none" ? nullptr : kind_called(name).make(context, options);
}

std::string input_owner(const std::string& encoding) { return encoding + " at the input"; }

}  // namespace tupelo
