#include "model/layer_set.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <sstream>
#include <stdexcept>

namespace tupelo {
namespace {

[[noreturn]] void reject(const std::string& setting, const std::string& what) {
  throw std::invalid_argument(setting + ": " + what);
}

// `part` is what the user wrote around it.
std::int64_t parse_layer(const std::string& text, std::int64_t layers, const std::string& setting,
                         const std::string& part) {
  std::int64_t layer = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layer);
  if (error != std::errc() || end != text.data() + text.size() || layer < 0) {
    reject(setting, "'" + part +
                        "' is no layer; write all, a layer (7), a range (6-11) or several joined by"
                        " + (0-2+6-8)");
  }
  if (layer >= layers) {
    reject(setting,
           "layer " + text + " does not exist; layers are 0 to " + std::to_string(layers - 1));
  }
  return layer;
}

}  // namespace

std::vector<std::int64_t> parse_layer_set(const std::string& text, std::int64_t layers,
                                          const std::string& setting) {
  std::vector<std::int64_t> set;
  if (text == "all") {
    set.resize(static_cast<std::size_t>(layers));
    std::iota(set.begin(), set.end(), 0);
    return set;
  }
  std::istringstream parts(text + "+");
  for (std::string part; std::getline(parts, part, '+');) {
    const std::size_t dash = part.find('-');
    const std::int64_t first = parse_layer(part.substr(0, dash), layers, setting, part);
    const std::int64_t last = dash == std::string::npos
                                  ? first
                                  : parse_layer(part.substr(dash + 1), layers, setting, part);
    if (last < first) {
      reject(setting, "range '" + part + "' ends before it starts");
    }
    for (std::int64_t layer = first; layer <= last; ++layer) {
      set.push_back(layer);
    }
  }
  std::sort(set.begin(), set.end());
  const auto twice = std::adjacent_find(set.begin(), set.end());
  if (twice != set.end()) {
    reject(setting, "layer " + std::to_string(*twice) + " is named twice in '" + text + "'");
  }
  return set;
}

std::string layer_set_text(const std::vector<std::int64_t>& set, std::int64_t layers) {
  if (static_cast<std::int64_t>(set.size()) == layers) {
    return "all";
  }
  std::string text;
  for (std::size_t begin = 0; begin < set.size();) {
    std::size_t end = begin + 1;
    while (end < set.size() && set[end] == set[end - 1] + 1) {
      ++end;
    }
    text.append(text.empty() ? "" : "+").append(std::to_string(set[begin]));
    if (end - begin > 1) {
      text.append("-").append(std::to_string(set[end - 1]));
    }
    begin = end;
  }
  return text;
}

}  // namespace tupelo
