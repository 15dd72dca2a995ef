#include "data/cleaning/repetition.h"

#include <bit>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "data/cleaning/lines.h"
#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

constexpr std::size_t kGramCharacters = 10;
constexpr std::size_t kMostGramCharacters = 100'000;
constexpr std::size_t kLeastGramCharacters = 200;
constexpr std::size_t kLeastLines = 4;
constexpr std::uint64_t kHashBase = 0x9E3779B97F4A7C15u;

// Knows 64 bits of what it has seen; the chance that two of 100,000 runs share them is 3e-10.
class SeenHashes {
 public:
  explicit SeenHashes(std::size_t count) : slots_(std::bit_ceil(2 * count), kFree) {}

  // False when it was there.
  bool insert(std::uint64_t hash) {
    const std::uint64_t mask = slots_.size() - 1;
    if (hash == kFree) hash = 1;
    for (std::uint64_t slot = hash * kHashBase >> 32 & mask;; slot = (slot + 1) & mask) {
      if (slots_[slot] == hash) return false;
      if (slots_[slot] != kFree) continue;
      slots_[slot] = hash;
      return true;
    }
  }

 private:
  static constexpr std::uint64_t kFree = 0;
  std::vector<std::uint64_t> slots_;
};

}  // namespace

double repeated_share_of_lines(std::string_view text) {
  std::unordered_set<std::string_view> seen;
  std::size_t lines = 0, repeated = 0, total = 0;
  for_each_line(text, [&](std::string_view line) {
    if (line.empty()) return;
    ++lines;
    total += line.size();
    if (!seen.insert(line).second) repeated += line.size();
  });
  if (lines < kLeastLines) return 0;
  return static_cast<double>(repeated) / static_cast<double>(total);
}

double repeated_share_of_grams(std::string_view text) {
  std::vector<char32_t> characters;
  for (const char *at = text.data(), *const end = at + text.size();
       at < end && characters.size() < kMostGramCharacters;) {
    const Utf8Character character = read_utf8(at, end);
    characters.push_back(character.code_point);
    at += character.bytes;
  }
  if (characters.size() < kLeastGramCharacters) return 0;
  const std::size_t grams = characters.size() - kGramCharacters + 1;
  SeenHashes seen(grams);
  std::size_t repeated = 0;
  std::uint64_t hash = 0, first_power = 1;
  for (std::size_t i = 1; i < kGramCharacters; ++i) first_power *= kHashBase;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    if (i >= kGramCharacters) hash -= characters[i - kGramCharacters] * first_power;
    hash = hash * kHashBase + characters[i];
    if (i + 1 >= kGramCharacters) repeated += seen.insert(hash) ? 0 : 1;
  }
  return static_cast<double>(repeated) / static_cast<double>(grams);
}

}  // namespace tupelo
