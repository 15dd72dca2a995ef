// Byte-pair merging over counted words: the heart of training a vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tupelo {

// A symbol is a token's text; inside a word it may carry a prefix such as "##".
class PairMerger {
 public:
  using Symbol = std::uint32_t;
  struct Merge {
    Symbol left, right, joined;
  };
  // Which of two pairs that occur equally often is joined first.
  enum class Ties {
    kByText,    // whose joined text is least by bytes, then whose left half is
    kByNumber,  // whose left half was made first, then whose right half was
  };

  // `continuation` is that prefix: what joins loses it at the seam. May be empty.
  PairMerger(std::string continuation, Ties ties)
      : continuation_(std::move(continuation)), ties_(ties) {}
  PairMerger(const PairMerger&) = delete;  // the queue's order refers to this object
  PairMerger& operator=(const PairMerger&) = delete;

  // The number of `symbol`'s text, new or known.
  Symbol symbol(std::string_view text);
  void add_word(const std::vector<Symbol>& word, std::uint64_t count);

  // Joins the pair that occurs most often. Counts are exact, so the order depends on nothing else.
  // The joined symbol may have existed before (a + bc and ab + c). Returns nothing when no pair
  // occurs `min_count` times.
  std::optional<Merge> merge_next(std::uint64_t min_count);

  const std::string& text(Symbol symbol) const { return *texts_[symbol]; }

 private:
  struct Word {
    std::size_t begin;  // in symbols_
    std::uint32_t length;
    std::uint64_t count;
  };
  struct Pair {
    std::uint64_t count = 0;
    // Words that held the pair at some time, perhaps twice in the list.
    std::vector<std::uint32_t> words;
  };
  struct Candidate {
    std::uint64_t count;
    Symbol left, right;
  };
  struct Worse {
    const PairMerger* merger;
    bool operator()(const Candidate& a, const Candidate& b) const { return merger->worse(a, b); }
  };
  using PairKey = std::uint64_t;

  static PairKey key(Symbol left, Symbol right) { return PairKey{left} << 32 | right; }
  // What `symbol` adds at the right end of a join: its text without the prefix.
  std::string_view tail(Symbol symbol) const;
  bool worse(const Candidate& a, const Candidate& b) const;
  std::optional<Candidate> next_candidate(std::uint64_t min_count);
  void start();
  void merge_in_word(std::uint32_t index, const Candidate& pair, Symbol joined);
  void count_pairs(const Word& word, std::int64_t sign);

  std::string continuation_;
  Ties ties_;
  std::unordered_map<std::string, Symbol> numbers_;
  std::vector<const std::string*> texts_;  // keys of numbers_, which stay where they are
  std::vector<Symbol> symbols_;            // of all words, one after another
  std::vector<Word> words_;
  std::unordered_map<PairKey, Pair> pairs_;
  std::unordered_map<PairKey, std::int64_t> changes_;  // of counts, by the merge at hand
  // Entries may be out of date: a pair that became rarer is put back when it comes up, one that
  // became more frequent was entered again.
  std::priority_queue<Candidate, std::vector<Candidate>, Worse> queue_{Worse{this}};
  bool started_ = false;
};

}  // namespace tupelo
