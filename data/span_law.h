// How long the spans of masked words are, and how often they begin.
#pragma once

#include <cstdint>
#include <vector>

#include "data/data_options.h"

namespace tupelo {

// Spans begin at words, each by a coin of its own, have lengths of their own, and may overlap. So a
// word is left alone with the product, over the words a span could have come from, of the
// probability that none came:
//   1 - fraction = (1 - start P(length > 0)) (1 - start P(length > 1)) ...
// which fixes `start`. Every word is masked with the same probability, whatever its length, and so
// is every token.
class SpanLaw {
 public:
  // For kWholeWord, kSpan or kNgram. Throws std::invalid_argument for parameters out of range.
  explicit SpanLaw(const DataOptions& options);

  std::uint64_t longest() const { return length_above_.size(); }
  // Probability that a span begins at a word.
  double start() const { return start_; }
  // The length that 32 random bits stand for, 1 to longest().
  std::uint64_t length(std::uint32_t bits) const {
    std::uint64_t words = 1;
    while (words < longest() && bits < length_above_[words]) ++words;
    return words;
  }

 private:
  std::vector<std::uint64_t> length_above_;  // [n]: P(length > n) of 2^32
  double start_ = 0;
};

}  // namespace tupelo
