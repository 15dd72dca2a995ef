#include "optim/unknown_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace tupelo {
namespace {

// Letters to insert, delete or replace to make one text of the other (Levenshtein).
std::size_t edit_distance(const std::string& left, const std::string& right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < right.size(); ++j) {
      const std::size_t replaced = diagonal + (left[i] != right[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string unknown_name_message(const std::string& kind, const std::string& name,
                                 const std::vector<std::string>& valid) {
  std::string message = "unknown " + kind + " '" + name + "'";
  const auto nearest =
      std::min_element(valid.begin(), valid.end(), [&](const auto& a, const auto& b) {
        return edit_distance(name, a) < edit_distance(name, b);
      });
  if (nearest != valid.end() && 3 * edit_distance(name, *nearest) <= nearest->size()) {
    message += ", did you mean '" + *nearest + "'?";
  } else {
    message += ".";
  }
  message += " Valid:";
  for (const std::string& candidate : valid) {
    message += (&candidate == &valid.front() ? " " : ", ") + candidate;
  }
  return message;
}

}  // namespace tupelo
