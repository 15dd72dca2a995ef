#include "data/tokenizer/byte_bpe_trainer.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/byte_bpe_model.h"
#include "data/tokenizer/byte_level_splitter.h"
#include "data/tokenizer/pair_merger.h"
#include "data/tokenizer/special_names.h"
#include "data/tokenizer/unused_tokens.h"

namespace tupelo {
namespace {

constexpr std::size_t kBytes = 256;
constexpr const char* kSpecialTokens[] = {kRobertaNames.cls, kRobertaNames.pad, kRobertaNames.sep,
                                          kRobertaNames.unk, kRobertaNames.mask};
constexpr std::size_t kLeastSize = std::size(kSpecialTokens) + kBytes;
// A token is written with at most two bytes per byte, and its file takes no longer ones.
constexpr std::size_t kMaxWordBytes = kMaxByteBpeTokenBytes / 2;

ByteBpeTrainerOptions checked(const ByteBpeTrainerOptions& options) {
  check_size_multiple(options.size_multiple);
  if (options.vocab_size < kLeastSize) {
    throw std::invalid_argument(
        "a vocabulary of " + std::to_string(options.vocab_size) +
        " tokens cannot hold the special tokens and the 256 bytes: the least size is " +
        std::to_string(kLeastSize));
  }
  if (options.vocab_size > kMaxByteBpeTokens - options.size_multiple) {
    throw std::invalid_argument("a vocabulary of " + std::to_string(options.vocab_size) +
                                " tokens is too large: the most is " +
                                std::to_string(kMaxByteBpeTokens - options.size_multiple));
  }
  return options;
}

// All bytes, in the order of the symbols that stand for them.
std::vector<std::string> bytes_in_order() {
  std::vector<std::string> bytes;
  for (std::size_t byte = 0; byte < kBytes; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  const auto symbol = [](const std::string& byte) {
    return byte_symbol(static_cast<std::uint8_t>(byte.front()));
  };
  std::sort(bytes.begin(), bytes.end(),
            [&](const std::string& a, const std::string& b) { return symbol(a) < symbol(b); });
  return bytes;
}

void add_words(const std::vector<CountedWord>& words, PairMerger& merger) {
  std::vector<PairMerger::Symbol> symbols;
  for (const CountedWord& word : words) {
    if (word.word.size() < 2) continue;
    symbols.clear();
    for (const char byte : word.word) symbols.push_back(merger.symbol({&byte, 1}));
    merger.add_word(symbols, word.count);
  }
}

// A pair that became frequent again, by way of a token that can be joined in two ways, counts where
// it was joined last, as HF has it.
std::vector<ByteBpeModel::Merge> merges_of(const std::vector<PairMerger::Merge>& merges,
                                           const PairMerger& merger) {
  std::unordered_map<std::uint64_t, std::size_t> last;
  const auto pair = [](const PairMerger::Merge& merge) {
    return std::uint64_t{merge.left} << 32 | merge.right;
  };
  for (std::size_t i = 0; i < merges.size(); ++i) last[pair(merges[i])] = i;
  std::vector<ByteBpeModel::Merge> written;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    if (last[pair(merges[i])] != i) continue;
    written.push_back(
        {written_form(merger.text(merges[i].left)), written_form(merger.text(merges[i].right))});
  }
  return written;
}

}  // namespace

struct ByteBpeTrainer::State {
  explicit State(const ByteBpeTrainerOptions& given)
      : options(checked(given)),
        counts(options.threads, [this](std::string_view text, WordCounts& into) {
          std::string copy;
          const bool prefix = options.byte_bpe.add_prefix_space;
          split_byte_level(classes, text_to_split(text, prefix, copy), [&](std::string_view word) {
            if (word.size() <= kMaxWordBytes) into.add_word(word);
          });
        }) {}

  ByteBpeTrainerOptions options;
  ByteLevelClasses classes;
  ParallelWordCounts counts;
};

ByteBpeTrainer::ByteBpeTrainer(ByteBpeTrainerOptions options)
    : state_(std::make_unique<State>(options)) {}

ByteBpeTrainer::~ByteBpeTrainer() = default;

void ByteBpeTrainer::add(const std::vector<std::string>& texts) { state_->counts.add(texts); }

void ByteBpeTrainer::add_counted(const std::vector<CountedWord>& words) {
  state_->counts.add(words);
}

std::vector<CountedWord> ByteBpeTrainer::counted() const { return state_->counts.sorted(); }

std::unique_ptr<Tokenizer> ByteBpeTrainer::train(
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) const {
  const ByteBpeTrainerOptions& options = state_->options;
  ByteBpeModel model;
  model.options = options.byte_bpe;
  model.tokens.assign(std::begin(kSpecialTokens), std::end(kSpecialTokens));
  PairMerger merger("", PairMerger::Ties::kByNumber);
  for (const std::string& byte : bytes_in_order()) {
    merger.symbol(byte);
    model.tokens.push_back(written_form(byte));
  }
  add_words(state_->counts.sorted(), merger);
  std::vector<PairMerger::Merge> merges;
  while (model.tokens.size() < options.vocab_size) {
    const auto merge = merger.merge_next(std::max<std::uint64_t>(options.min_count, 1));
    if (!merge) break;
    merges.push_back(*merge);
    const std::size_t known = model.tokens.size() - std::size(kSpecialTokens);
    if (merge->joined < known) continue;  // reached before by way of other halves
    model.tokens.push_back(written_form(merger.text(merge->joined)));
    if (progress) progress(model.tokens.size(), options.vocab_size);
  }
  model.merges = merges_of(merges, merger);
  add_unused_tokens(model.tokens, padded_size(options.vocab_size, options.size_multiple));
  if (progress) progress(model.tokens.size(), model.tokens.size());
  return make_byte_bpe(std::move(model), "trained vocabulary");
}

}  // namespace tupelo
