// One word to tokens by byte pairs: the pair of least rank is joined, leftmost first, until no pair
// is left.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/double_array.h"

namespace tupelo {

// Immutable after construction.
class BytePairEncoder {
 public:
  struct Rule {
    std::uint32_t left, right, joined;
  };
  // What encode() needs while it works; one per thread, made once and used for many words.
  struct Scratch {
    std::vector<std::uint32_t> ids, joined, previous, next;
    std::vector<std::uint32_t> ranks;
    std::vector<std::uint64_t> heap;
  };

  // `rules` in order of rank, pairs distinct. `bytes_of_id` holds the bytes of each token that a
  // byte or a rule makes; what it holds for others does not matter.
  BytePairEncoder(const std::array<std::uint32_t, 256>& byte_ids, const std::vector<Rule>& rules,
                  const std::vector<std::string>& bytes_of_id);

  // Appends the ids of `word`. Time is word.size() * log(word.size()) at most.
  void encode(std::string_view word, Scratch& scratch, std::vector<std::uint32_t>& ids) const;

 private:
  static constexpr std::uint32_t kNoRank = 0xFFFFFFFF;

  struct Join {
    std::uint32_t rank = kNoRank;
    std::uint32_t joined = 0;
  };
  struct Entry {
    std::uint64_t pair = 0;
    Join join;
  };

  static std::size_t bigram(char left, char right) {
    return std::size_t{static_cast<unsigned char>(left)} << 8 | static_cast<unsigned char>(right);
  }
  void add_rule(const Rule& rule, std::uint32_t rank);
  void add_whole_tokens(const std::vector<Rule>& rules,
                        const std::vector<std::string>& bytes_of_id);
  Join find(std::uint32_t left, std::uint32_t right) const;
  void encode_piece(std::string_view piece, Scratch& scratch,
                    std::vector<std::uint32_t>& ids) const;
  void join_short(std::string_view piece, std::vector<std::uint32_t>& ids) const;
  void join_long(std::string_view piece, Scratch& scratch, std::vector<std::uint32_t>& ids) const;

  std::array<std::uint32_t, 256> byte_ids_;
  std::vector<Entry> table_;      // open addressing by pair, at most half full
  std::vector<Join> byte_pairs_;  // the same for two bytes, by bigram()
  // Two bytes that are neighbours in no token are never joined: a word falls apart between them.
  std::bitset<65536> inside_tokens_;
  // Tokens that come out when their own bytes are encoded: most words of most texts are one.
  DoubleArray whole_tokens_;
  std::vector<std::uint32_t> whole_ids_;  // by value of whole_tokens_
};

}  // namespace tupelo
