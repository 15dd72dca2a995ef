// Which words of a document are masked.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/data_options.h"
#include "data/span_law.h"

namespace tupelo {

// Words of a document are chosen by blocks: those that begin at the same multiple of so many
// tokens.
inline constexpr std::uint64_t kMaskBlock = 512;

struct WordBlock {
  std::uint64_t document, number;         // words that begin in kMaskBlock * [number, number + 1)
  std::span<const std::uint64_t> starts;  // where they begin, rising, in the document; at least one
  std::uint64_t end;                      // of the last of them
};

struct ChosenWord {
  std::uint64_t begin, end, span;  // offsets in the document; the span begins at `span`
};

// Chooses words, or spans of words, of a block until its share of the tokens is reached. The words
// are cut into spans one after another, the spans are laid around a circle in random order, and an
// arc of it that is as long as the budget, at a random place, chooses the spans that begin in it.
// Where a span of the block is longer than 1/16 of it, as in short documents, the arc chooses the
// words that begin in it instead, so that it cuts spans at its ends. So
// - every word, and every token, is chosen with probability `mask_fraction`, whatever its length,
// - the tokens chosen of a block are as many as the budget says, up to what the spans or words at
//   the two ends of the arc stick out, which is 0 in the mean.
// data/FORMAT.md has the law in full.
class MaskChoice {
 public:
  // Throws std::invalid_argument for parameters out of range.
  explicit MaskChoice(const DataOptions& options);

  // Appends to `chosen`, in no order. Pure.
  void choose(std::uint64_t epoch, const WordBlock& block, std::vector<ChosenWord>& chosen) const;

 private:
  SpanLaw spans_;
  std::uint64_t seed_;
  std::uint64_t fraction_;  // of 2^32
};

}  // namespace tupelo
