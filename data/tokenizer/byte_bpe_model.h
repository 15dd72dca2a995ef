// What a byte-level BPE tokenizer is made of, and how it becomes one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace tupelo {

inline constexpr std::size_t kMaxByteBpeTokenBytes = 8192;  // as written
inline constexpr std::size_t kMaxByteBpeTokens = std::size_t{1} << 19;

struct ByteBpeModel {
  struct Merge {
    std::string left, right;
  };
  std::vector<std::string> tokens;  // by id, as vocab.json writes them (byte_alphabet.h)
  std::vector<Merge> merges;        // by rank
  ByteBpeOptions options;
};

// Throws CorpusError "WHERE: ..." for: a token that is empty, too long or there twice; a byte
// without a token; a merge that occurred before, or whose halves or whole are no tokens or do not
// consist of bytes; a special token that is made by a merge; too many of them.
std::unique_ptr<Tokenizer> make_byte_bpe(ByteBpeModel model, const std::string& where);

}  // namespace tupelo
