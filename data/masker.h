// Dynamic masking: which tokens the model must guess, and what it sees in their place.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/corpus.h"
#include "data/data_options.h"
#include "data/span_law.h"

namespace tupelo {

struct MaskedToken {
  std::uint32_t index;  // into the tokens that were given
  std::uint32_t original, replacement;
};

// Flags of where words begin, for document tokens [first, first + starts.size()).
struct WordFlags {
  std::uint64_t first = 0;
  std::span<const std::uint8_t> starts;
};

// Tokens, words or spans of words are chosen by coins, one for each token or word, thrown by a
// counter-based generator at (seed, epoch, document, offset of the token or of the word's first
// token). A span that begins at a word has its length from the generator at the same place. So
// masks depend on nothing else: not on rank, batch, row or sequence length. The budget is kept in
// expectation: every token that is not reserved is masked with probability `mask_fraction` (see
// span_law.h); with independent coins, its standard deviation over n tokens is that of n / k coins,
// k being 1 for tokens and of the order of a word's or span's tokens else. Reserved ids (see
// CorpusInfo) are never chosen and never drawn as replacements. data/FORMAT.md has the law in full.
class Masker {
 public:
  // Keeps a reference to `info`. Throws std::invalid_argument on shares or lengths out of range,
  // CorpusError when the vocabulary has no ordinary token to draw.
  Masker(const CorpusInfo& info, const DataOptions& options);

  // How many tokens before and behind those to mask mask() wants word flags of; fewer only where
  // the document begins or ends. All are 0 for kToken, which needs no flags.
  bool needs_words() const { return masking_ != Masking::kToken; }
  std::uint64_t flags_before() const;
  std::uint64_t flags_behind() const;

  // Tokens [first, first + tokens.size()) of a document. Replaces the chosen ones in place and
  // appends them to `masked` in order.
  void mask(std::uint64_t epoch, std::uint64_t document, std::uint64_t first,
            std::span<std::uint32_t> tokens, const WordFlags& words,
            std::vector<MaskedToken>& masked) const;

 private:
  class Pass;

  bool reserved(std::uint32_t id) const;
  std::uint32_t ordinary_token(std::uint64_t random_bits) const;
  std::uint32_t replacement(std::uint64_t key, std::uint64_t document, std::uint64_t offset,
                            std::uint64_t unit, std::uint32_t original) const;
  std::vector<std::uint64_t> word_starts(const WordFlags& words) const;

  const CorpusInfo& info_;
  std::uint64_t seed_;
  Masking masking_;
  MaskUnit unit_;
  SpanLaw spans_;
  std::uint64_t longest_word_;
  std::uint64_t chosen_below_, mask_below_, random_below_;  // of 2^32
};

// Hash whose wrapping sum stands for a set of masked tokens.
std::uint64_t mask_hash(std::uint64_t epoch, std::uint64_t document, std::uint64_t offset,
                        std::uint32_t replacement);

}  // namespace tupelo
