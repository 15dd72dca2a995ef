// Dynamic masking: which tokens the model must guess, and what it sees in their place.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/corpus.h"
#include "data/data_options.h"

namespace tupelo {

struct MaskedToken {
  std::uint32_t index;  // into the tokens that were given
  std::uint32_t original, replacement;
};

// Every token is chosen by a coin of its own (kWholeWord: every word by one coin), thrown by a
// counter-based generator at (seed, epoch, document, offset of the token or of its word's first
// token). So masks depend on nothing else: not on rank, batch, row or sequence length. Reserved ids
// (see CorpusInfo) are never chosen and never drawn as replacements.
class Masker {
 public:
  // Keeps a reference to `info`. Throws std::invalid_argument on shares out of range, CorpusError
  // when the vocabulary has no ordinary token to draw.
  Masker(const CorpusInfo& info, const DataOptions& options);

  // Tokens [first, first + tokens.size()) of a document. Replaces the chosen ones in place and
  // appends them to `masked` in order. For kWholeWord, `word_starts` has a flag per token, and the
  // word that tokens[0] belongs to begins at offset `first_word` <= first.
  void mask(std::uint64_t epoch, std::uint64_t document, std::uint64_t first,
            std::span<std::uint32_t> tokens, std::span<const std::uint8_t> word_starts,
            std::uint64_t first_word, std::vector<MaskedToken>& masked) const;

 private:
  bool reserved(std::uint32_t id) const;
  std::uint32_t ordinary_token(std::uint64_t random_bits) const;
  std::uint32_t replacement(std::uint64_t key, std::uint64_t document, std::uint64_t offset,
                            std::uint64_t word, std::uint32_t original) const;

  const CorpusInfo& info_;
  std::uint64_t seed_;
  bool whole_word_;
  std::uint64_t chosen_below_, mask_below_, random_below_;  // of 2^32
};

// Hash whose wrapping sum stands for a set of masked tokens.
std::uint64_t mask_hash(std::uint64_t epoch, std::uint64_t document, std::uint64_t offset,
                        std::uint32_t replacement);

}  // namespace tupelo
