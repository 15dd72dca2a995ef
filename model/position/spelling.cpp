#include "model/position/spelling.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace tupelo {
namespace {

std::size_t edit_distance(const std::string& left, const std::string& right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t replaced = diagonal + (left[i - 1] != right[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// "TUPE_R" -> "tupe-r": names here have neither capitals nor underscores.
std::string plain_spelling(std::string word) {
  for (char& letter : word) {
    letter =
        letter == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return word;
}

}  // namespace

std::string spelling_hint(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string plain = plain_spelling(word);
  std::string nearest;
  std::size_t nearest_distance = word.size() / 2 + 1;
  for (const std::string& candidate : candidates) {
    const bool begins_so = plain.size() > 1 && candidate.starts_with(plain);
    const std::size_t distance = begins_so ? 0 : edit_distance(plain, candidate);
    if (distance < nearest_distance) {
      nearest_distance = distance;
      nearest = candidate;
    }
  }
  return nearest.empty() ? "" : " (did you mean '" + nearest + "'?)";
}

std::string comma_separated(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

}  // namespace tupelo
