#include "data/tokenizer/wordpiece_trainer.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "data/tokenizer/pair_merger.h"
#include "data/tokenizer/special_names.h"
#include "data/tokenizer/unused_tokens.h"
#include "data/tokenizer/word_splitter.h"

namespace tupelo {
namespace {

const std::string kContinuation = "##";
constexpr const char* kSpecialTokens[] = {kBertNames.pad, kBertNames.unk, kBertNames.cls,
                                          kBertNames.sep, kBertNames.mask};
constexpr std::size_t kSpecialCount = std::size(kSpecialTokens);

struct CharacterUse {
  std::uint64_t count = 0;
  bool first = false;   // begins a word
  bool inside = false;  // occurs behind the beginning of a word

  std::size_t forms() const { return (first ? 1u : 0u) + (inside ? 1u : 0u); }
};
// By character in UTF-8, in byte order.
using Alphabet = std::map<std::string, CharacterUse, std::less<>>;

std::vector<std::string_view> characters_of(std::string_view word) {
  std::vector<std::string_view> characters;
  while (!word.empty()) {
    const std::size_t bytes = read_utf8(word.data(), word.data() + word.size()).bytes;
    characters.push_back(word.substr(0, bytes));
    word.remove_prefix(bytes);
  }
  return characters;
}

Alphabet alphabet_of(const std::vector<CountedWord>& words) {
  Alphabet alphabet;
  for (const CountedWord& word : words) {
    bool first = true;
    for (const std::string_view character : characters_of(word.word)) {
      auto entry = alphabet.find(character);
      if (entry == alphabet.end()) entry = alphabet.emplace(character, CharacterUse{}).first;
      entry->second.count += word.count;
      (first ? entry->second.first : entry->second.inside) = true;
      first = false;
    }
  }
  return alphabet;
}

std::size_t size_with(const Alphabet& alphabet, std::uint64_t min_count) {
  std::size_t size = kSpecialCount;
  for (const auto& [character, use] : alphabet) {
    if (use.count >= min_count) size += use.forms();
  }
  return size;
}

// The least min_count with which the alphabet fits, or 0 when none does.
std::uint64_t fitting_min_count(const Alphabet& alphabet, std::size_t vocab_size) {
  if (vocab_size < kSpecialCount) return 0;
  std::vector<std::pair<std::uint64_t, std::size_t>> by_count;
  for (const auto& [character, use] : alphabet) by_count.emplace_back(use.count, use.forms());
  std::sort(by_count.rbegin(), by_count.rend());
  std::size_t size = kSpecialCount;
  for (const auto& [count, forms] : by_count) {
    size += forms;
    if (size > vocab_size) return count + 1;
  }
  return 1;
}

void check_size(const Alphabet& alphabet, const WordPieceTrainerOptions& options) {
  const std::size_t least = size_with(alphabet, options.min_count);
  if (least <= options.vocab_size) return;
  std::string what =
      "a vocabulary of " + std::to_string(options.vocab_size) +
      " tokens cannot hold the special tokens and the characters that occur at least " +
      std::to_string(options.min_count) + " times: the least size is " + std::to_string(least);
  if (const auto min_count = fitting_min_count(alphabet, options.vocab_size); min_count != 0) {
    what += ", or else a minimum count of " + std::to_string(min_count);
  }
  throw std::invalid_argument(what);
}

// One character is one word in most Chinese text, and is counted without a string.
struct CountingSink {
  WordCounts& counts;
  void isolated(std::uint32_t code_point) { counts.add_character(code_point); }
  void long_word() {}  // no vocabulary can hold it
  void word(std::string_view word) { counts.add_word(word); }
};

}  // namespace

struct WordPieceTrainer::State {
  explicit State(const WordPieceTrainerOptions& given)
      : options(given),
        table(options.wordpiece.lowercase,
              [](char32_t c) { return static_cast<std::uint32_t>(c); }),
        counts(options.threads, [this](std::string_view text, WordCounts& into) {
          split_words(table, text, CountingSink{into});
        }) {}

  WordPieceTrainerOptions options;
  CharacterTable table;
  ParallelWordCounts counts;
};

WordPieceTrainer::WordPieceTrainer(WordPieceTrainerOptions options)
    : state_(std::make_unique<State>(options)) {
  check_size_multiple(options.size_multiple);
}

WordPieceTrainer::~WordPieceTrainer() = default;

void WordPieceTrainer::add(const std::vector<std::string>& texts) { state_->counts.add(texts); }

void WordPieceTrainer::add_counted(const std::vector<CountedWord>& words) {
  state_->counts.add(words);
}

std::vector<CountedWord> WordPieceTrainer::counted() const { return state_->counts.sorted(); }

std::vector<std::string> WordPieceTrainer::train(
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) const {
  const WordPieceTrainerOptions& options = state_->options;
  const std::vector<CountedWord> words = state_->counts.sorted();
  const Alphabet alphabet = alphabet_of(words);
  check_size(alphabet, options);

  std::vector<std::string> tokens(std::begin(kSpecialTokens), std::end(kSpecialTokens));
  PairMerger merger(kContinuation, PairMerger::Ties::kByText);
  const auto add_character = [&](const std::string& text) {
    merger.symbol(text);
    tokens.push_back(text);
  };
  for (const auto& [character, use] : alphabet) {
    if (use.count >= options.min_count && use.first) add_character(character);
  }
  for (const auto& [character, use] : alphabet) {
    if (use.count >= options.min_count && use.inside) add_character(kContinuation + character);
  }

  for (const CountedWord& word : words) {
    std::vector<PairMerger::Symbol> symbols;
    for (const std::string_view character : characters_of(word.word)) {
      // A word with a character that the vocabulary lacks will be [UNK]: its pairs help nobody.
      if (alphabet.find(character)->second.count < options.min_count) {
        symbols.clear();
        break;
      }
      symbols.push_back(merger.symbol(symbols.empty() ? std::string(character)
                                                      : kContinuation + std::string(character)));
    }
    if (symbols.size() > 1) merger.add_word(symbols, word.count);
  }

  std::size_t known = tokens.size() - kSpecialCount;
  while (tokens.size() < options.vocab_size) {
    const auto merge = merger.merge_next(std::max<std::uint64_t>(options.min_count, 1));
    if (!merge) break;
    if (merge->joined < known) continue;  // reached before by way of other halves
    ++known;
    tokens.push_back(merger.text(merge->joined));
    if (progress) progress(tokens.size(), options.vocab_size);
  }
  add_unused_tokens(tokens, padded_size(options.vocab_size, options.size_multiple));
  if (progress) progress(tokens.size(), options.vocab_size);
  return tokens;
}

}  // namespace tupelo
