// What an action throws, as text.
#pragma once

#include <string>

namespace tupelo {

template <typename Error, typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

}  // namespace tupelo
