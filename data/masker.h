// Dynamic masking: which tokens the model must guess, and what it sees in their place.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/corpus.h"
#include "data/data_options.h"
#include "data/mask_choice.h"

namespace tupelo {

struct MaskedToken {
  std::uint32_t index;  // into the tokens that were given
  std::uint32_t original, replacement;
};

// A stretch of a document.
struct TokenRange {
  std::uint64_t first, end;
};

// Flags of where words begin, for document tokens [first, first + starts.size()).
struct WordFlags {
  std::uint64_t first = 0;
  std::span<const std::uint8_t> starts;
};

// Which law masks follow. A run keeps to one: what it has masked is part of what it is.
inline constexpr int kMaskLaw = 2;

// Words, spans of words or tokens are chosen by MaskChoice, block by block of a document, with a
// counter-based generator. So masks are a function of (seed, epoch, document, token offset) and
// the words around it: not of rank, batch, row or sequence length. Reserved ids (see CorpusInfo)
// are never replaced and never drawn as replacements. data/FORMAT.md has the law in full.
class Masker {
 public:
  // Keeps a reference to `info`. Throws std::invalid_argument on shares or lengths out of range,
  // CorpusError when the vocabulary has no ordinary token to draw.
  Masker(const CorpusInfo& info, const DataOptions& options);

  // False for kToken, which needs no flags.
  bool needs_words() const { return masking_ != Masking::kToken; }
  // The tokens that mask() wants word flags of, for tokens [first, end) of a document of `length`
  // tokens.
  TokenRange flags_for(TokenRange tokens, std::uint64_t length) const;

  // Tokens [first, first + tokens.size()) of a document of `length` tokens. Replaces the chosen
  // ones in place and appends them to `masked` in order.
  void mask(std::uint64_t epoch, std::uint64_t document, std::uint64_t length, std::uint64_t first,
            std::span<std::uint32_t> tokens, const WordFlags& words,
            std::vector<MaskedToken>& masked) const;

 private:
  // The chosen ones of words that reach into tokens [first, end).
  std::vector<ChosenWord> choose_words(std::uint64_t epoch, std::uint64_t document,
                                       std::uint64_t length, TokenRange tokens,
                                       const WordFlags& words) const;
  std::vector<ChosenWord> choose_tokens(std::uint64_t epoch, std::uint64_t document,
                                        std::uint64_t length, TokenRange tokens) const;
  bool reserved(std::uint32_t id) const;
  std::uint32_t ordinary_token(std::uint64_t random_bits) const;
  std::uint32_t replacement(std::uint64_t key, std::uint64_t document, std::uint64_t offset,
                            std::uint64_t unit, std::uint32_t original) const;
  std::vector<std::uint64_t> word_starts(const WordFlags& words) const;
  std::vector<std::uint64_t> split_starts(const WordFlags& words) const;

  const CorpusInfo& info_;
  std::uint64_t seed_;
  Masking masking_;
  MaskUnit unit_;
  MaskChoice choice_;
  std::uint64_t longest_word_;
  std::uint64_t mask_below_, random_below_;  // of 2^32
};

// Hash whose wrapping sum stands for a set of masked tokens.
std::uint64_t mask_hash(std::uint64_t epoch, std::uint64_t document, std::uint64_t offset,
                        std::uint32_t replacement);

}  // namespace tupelo
