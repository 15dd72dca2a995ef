// Learns a WordPiece vocabulary from text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/word_counts.h"

namespace tupelo {

struct WordPieceTrainerOptions {
  // Special tokens included; the result is padded with [unusedN] to this size when the text offers
  // fewer merges, and further to a multiple of `size_multiple`. The default is for Chinese: all
  // characters that matter and the commonest pieces of what else occurs.
  std::uint32_t vocab_size = 8192;
  std::uint32_t size_multiple = 1;  // 64 suits tensor cores
  std::uint64_t min_count = 2;      // of a character or a pair
  WordPieceOptions wordpiece;
  int threads = 1;
};

// Byte-for-byte the same vocabulary for any thread count, any order in which threads run, and any
// order and grouping in which the texts are added. Memory is bounded by the number of distinct
// words (times threads), not by the text.
class WordPieceTrainer {
 public:
  // Throws std::invalid_argument when threads or size_multiple < 1.
  explicit WordPieceTrainer(WordPieceTrainerOptions options);
  ~WordPieceTrainer();

  // Counts the words of `texts`, in parallel.
  void add(const std::vector<std::string>& texts);
  // What another trainer of the same options counted.
  void add_counted(const std::vector<CountedWord>& words);
  // All words so far, sorted by bytes.
  std::vector<CountedWord> counted() const;
  // Merges pairs (count descending, then token bytes ascending, then bytes of the left half
  // ascending) until vocab_size. Returns tokens in id order: [PAD] [UNK] [CLS] [SEP] [MASK],
  // characters as words begin with them, characters as they occur inside words ("##x"), merges,
  // [unused0] ... up to vocab_size. A character is in when it occurs min_count times, wherever;
  // words with one that is not are ignored, as they will be [UNK]. `progress(done, total)` may be
  // empty. Throws std::invalid_argument when vocab_size cannot hold the special tokens and the
  // characters; names the least size that does, and the least min_count with which this size does.
  std::vector<std::string> train(
      const std::function<void(std::uint64_t, std::uint64_t)>& progress = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tupelo
