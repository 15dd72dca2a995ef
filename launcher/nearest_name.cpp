#include "launcher/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>

namespace tupelo {
namespace {

constexpr std::size_t kShortList = 16;

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

std::string last_part(const std::string& dotted) { return dotted.substr(dotted.rfind('.') + 1); }

}  // namespace

std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = std::min(edit_distance(name, candidate),
                                          edit_distance(last_part(name), last_part(candidate)) + 1);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string unknown_name(const std::string& what, const std::string& name,
                         const std::vector<std::string>& valid) {
  std::string text = "unknown " + what + " '" + name + "'";
  const std::string nearest = nearest_name(name, valid);
  if (!nearest.empty()) {
    text += "; did you mean '" + nearest + "'?";
    if (valid.size() > kShortList) return text;
  }
  text += nearest.empty() ? "; valid: " : " Valid: ";
  for (std::size_t i = 0; i < valid.size(); ++i) text += (i ? ", " : "") + valid[i];
  return text;
}

std::string one_of(const std::string& value, const std::vector<std::string>& valid) {
  if (std::find(valid.begin(), valid.end(), value) == valid.end()) {
    throw std::invalid_argument(unknown_name("value", value, valid));
  }
  return value;
}

}  // namespace tupelo
