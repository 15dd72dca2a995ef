// How long the spans of masked words are.
#pragma once

#include <cstdint>
#include <vector>

#include "data/data_options.h"

namespace tupelo {

// A law of lengths in words: always 1 (kToken, kWholeWord), SpanBERT's geometric one (kSpan), or
// with probability proportional to 1 / length (kNgram).
class SpanLaw {
 public:
  // Throws std::invalid_argument for parameters out of range.
  explicit SpanLaw(const DataOptions& options);

  std::uint64_t longest() const { return length_above_.size(); }
  // The length that 32 random bits stand for, 1 to longest().
  std::uint64_t length(std::uint32_t bits) const {
    std::uint64_t words = 1;
    while (words < longest() && bits < length_above_[words]) ++words;
    return words;
  }

 private:
  std::vector<std::uint64_t> length_above_;  // [n]: P(length > n) of 2^32
};

}  // namespace tupelo
