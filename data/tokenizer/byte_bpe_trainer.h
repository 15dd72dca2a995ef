// Learns a byte-level BPE vocabulary from text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/word_counts.h"

namespace tupelo {

struct ByteBpeTrainerOptions {
  // Special tokens and bytes included; the result is padded with [unusedN] to this size when the
  // text offers fewer merges, and further to a multiple of `size_multiple`. The default is for
  // Chinese: room for the common characters, of three bytes each, and words.
  std::uint32_t vocab_size = 21'120;
  std::uint32_t size_multiple = 1;  // 64 suits tensor cores
  std::uint64_t min_count = 2;      // of a pair
  ByteBpeOptions byte_bpe;
  int threads = 1;
};

// The same vocabulary as HF's ByteLevelBPETokenizer learns (tokenizers 0.23.3, special tokens <s>
// <pad> </s> <unk> <mask>) unless a text holds words of more than 4096 bytes, which are not
// counted. The same for any thread count, any order in which threads run, and any order and
// grouping in which the texts are added. Memory is bounded by the number of distinct words (times
// threads), not by the text; a clause without spaces is one word.
class ByteBpeTrainer {
 public:
  // Throws std::invalid_argument when threads or size_multiple < 1, or vocab_size cannot hold the
  // special tokens and the bytes.
  explicit ByteBpeTrainer(ByteBpeTrainerOptions options);
  ~ByteBpeTrainer();

  // Counts the words of `texts`, in parallel.
  void add(const std::vector<std::string>& texts);
  // What another trainer of the same options counted.
  void add_counted(const std::vector<CountedWord>& words);
  // All words so far, sorted by bytes.
  std::vector<CountedWord> counted() const;

  // Ids: <s> <pad> </s> <unk> <mask>, the bytes in the order of their symbols, merges, [unused0]
  // ... up to the size. `progress(done, total)` may be empty.
  std::unique_ptr<Tokenizer> train(
      const std::function<void(std::uint64_t, std::uint64_t)>& progress = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tupelo
