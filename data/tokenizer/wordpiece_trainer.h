// Learns a WordPiece vocabulary from text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace tupelo {

struct WordPieceTrainerOptions {
  // Final size, special tokens included; the result is padded with [unusedN] to this size when the text
  // offers fewer merges.
  std::uint32_t vocab_size = 8192;
  std::uint64_t min_count = 2;       // of a character or a pair
  WordPieceOptions wordpiece;
  int threads = 1;
};

// Byte-for-byte the same vocabulary for any thread count and any order in which threads run.
class WordPieceTrainer {
 public:
  explicit WordPieceTrainer(WordPieceTrainerOptions options);
  ~WordPieceTrainer();

  // Counts the words of `texts`, in parallel.
  void add(const std::vector<std::string>& texts);
  // Merges pairs (count descending, then token bytes ascending) until vocab_size. Returns tokens in id
  // order: [PAD] [UNK] [CLS] [SEP] [MASK], characters, merges. `progress(done, total)` may be empty.
  // Throws std::invalid_argument when vocab_size cannot hold the special tokens and the characters.
  std::vector<std::string> train(
      const std::function<void(std::uint64_t, std::uint64_t)>& progress = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tupelo
