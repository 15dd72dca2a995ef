#include "data/masker.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "data/mixing.h"
#include "data/philox.h"

namespace tupelo {
namespace {

// Streams of the generator: one coin per token or word, what a chosen token becomes, and how long a
// span is.
constexpr std::uint64_t kChoice = 1;
constexpr std::uint64_t kReplacement = 2;
constexpr std::uint64_t kLength = 3;

constexpr std::int64_t kMostWordTokens = 1024;

std::uint64_t of_all_words(double share) {
  return static_cast<std::uint64_t>(std::llround(std::ldexp(share, 32)));
}

bool is_share(double value) { return value >= 0 && value <= 1; }

// The coins of neighbouring tokens come from one Philox block: four words, four tokens.
class Coins {
 public:
  Coins(std::uint64_t key, std::uint64_t document) : key_(key), document_(document) {}

  std::uint32_t at(std::uint64_t offset) {
    if (offset / 4 != block_index_) {
      block_index_ = offset / 4;
      block_ = philox(block_index_, document_, key_);
    }
    return block_[offset % 4];
  }

 private:
  std::uint64_t key_, document_;
  std::uint64_t block_index_ = ~std::uint64_t{0};
  PhiloxBlock block_{};
};

}  // namespace

Masker::Masker(const CorpusInfo& info, const DataOptions& options)
    : info_(info),
      seed_(options.seed),
      masking_(options.masking),
      unit_(options.masking == Masking::kToken ? MaskUnit::kToken : options.mask_unit),
      spans_(options),
      longest_word_(static_cast<std::uint64_t>(options.longest_word_tokens)),
      chosen_below_(of_all_words(spans_.start())),
      mask_below_(of_all_words(options.mask_token_share)),
      random_below_(of_all_words(options.mask_token_share + options.random_token_share)) {
  if (!is_share(options.mask_fraction)) {
    throw std::invalid_argument("the mask fraction must lie between 0 and 1");
  }
  if (!is_share(options.mask_token_share) || !is_share(options.random_token_share) ||
      options.mask_token_share + options.random_token_share > 1 + 1e-9) {
    throw std::invalid_argument(
        "the shares of [MASK] and of random tokens must lie between 0 and 1, their sum as well");
  }
  if (options.longest_word_tokens < 1 || options.longest_word_tokens > kMostWordTokens) {
    throw std::invalid_argument("the longest word that is masked whole must have 1 to " +
                                std::to_string(kMostWordTokens) + " tokens, not " +
                                std::to_string(options.longest_word_tokens));
  }
  if (info.vocab_size <= info.reserved_ids.size()) {
    throw CorpusError("the vocabulary has no token besides special and unused ones");
  }
}

// Masking of one run of tokens.
class Masker::Pass {
 public:
  Pass(const Masker& masker, std::uint64_t epoch, std::uint64_t document, std::uint64_t first,
       std::span<std::uint32_t> tokens, std::vector<MaskedToken>& masked)
      : masker_(masker),
        coins_(hash_numbers(masker.seed_, epoch, kChoice), document),
        length_key_(hash_numbers(masker.seed_, epoch, kLength)),
        replacement_key_(hash_numbers(masker.seed_, epoch, kReplacement)),
        document_(document),
        first_(first),
        tokens_(tokens),
        masked_(masked) {}

  void mask_tokens() {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::uint64_t offset = first_ + i;
      if (coins_.at(offset) < masker_.chosen_below_) mask_token(i, offset);
    }
  }

  // `starts`: where words begin, from so far back that every span that reaches the tokens is seen.
  void mask_words(std::span<const std::uint64_t> starts) {
    const std::uint64_t end = first_ + tokens_.size();
    for (std::size_t word = 0; word < starts.size() && starts[word] < end; ++word) {
      enter_word(starts[word]);
      if (words_left_ == 0) continue;
      const std::uint64_t next = word + 1 < starts.size() ? std::min(starts[word + 1], end) : end;
      for (std::uint64_t offset = std::max(starts[word], first_); offset < next; ++offset) {
        mask_token(offset - first_, unit_at(offset, starts[word]));
      }
    }
  }

  // As many words as can reach into a document lie before its start, too: its first words are no
  // different from any other.
  void enter_words_before_the_document() {
    for (std::uint64_t back = masker_.spans_.longest() - 1; back > 0; --back) enter_word(0 - back);
  }

 private:
  void enter_word(std::uint64_t start) {
    if (words_left_ > 0) --words_left_;
    if (coins_.at(start) >= masker_.chosen_below_) return;
    const std::uint64_t length =
        masker_.spans_.longest() == 1
            ? 1
            : masker_.spans_.length(philox(start, document_, length_key_)[0]);
    if (length <= words_left_) return;
    words_left_ = length;
    span_ = start;
  }

  std::uint64_t unit_at(std::uint64_t offset, std::uint64_t word) const {
    if (masker_.unit_ == MaskUnit::kToken) return offset;
    return masker_.unit_ == MaskUnit::kWord ? word : span_;
  }

  void mask_token(std::size_t i, std::uint64_t unit) {
    const std::uint32_t original = tokens_[i];
    if (masker_.reserved(original)) return;
    tokens_[i] = masker_.replacement(replacement_key_, document_, first_ + i, unit, original);
    masked_.push_back({static_cast<std::uint32_t>(i), original, tokens_[i]});
  }

  const Masker& masker_;
  Coins coins_;
  std::uint64_t length_key_, replacement_key_, document_, first_;
  std::span<std::uint32_t> tokens_;
  std::vector<MaskedToken>& masked_;
  std::uint64_t words_left_ = 0;  // of the span that reaches farthest, with the current one
  std::uint64_t span_ = 0;        // where it begins
};

// A span reaches back longest() words with the current one, and whether a word is too long shows
// within as many tokens as it may have.
std::uint64_t Masker::flags_before() const {
  return needs_words() ? (spans_.longest() + 1) * longest_word_ : 0;
}

std::uint64_t Masker::flags_behind() const { return needs_words() ? longest_word_ : 0; }

// Offsets where words begin. The flags may begin or end inside a word: what was seen of it is then
// longer than a word may be, or too far away to matter.
std::vector<std::uint64_t> Masker::word_starts(const WordFlags& words) const {
  const std::size_t count = words.starts.size();
  std::vector<std::uint64_t> starts;
  starts.reserve(count);
  for (std::size_t begin = 0; begin < count;) {
    std::size_t end = begin + 1;
    while (end < count && words.starts[end] == 0) ++end;
    const bool cut = begin == 0 && words.first > 0 && words.starts[0] == 0;
    const std::size_t parts = cut || end - begin > longest_word_ ? end - begin : 1;
    for (std::size_t i = 0; i < parts; ++i) starts.push_back(words.first + begin + i);
    begin = end;
  }
  return starts;
}

void Masker::mask(std::uint64_t epoch, std::uint64_t document, std::uint64_t first,
                  std::span<std::uint32_t> tokens, const WordFlags& words,
                  std::vector<MaskedToken>& masked) const {
  Pass pass(*this, epoch, document, first, tokens, masked);
  if (!needs_words()) {
    pass.mask_tokens();
    return;
  }
  const std::vector<std::uint64_t> starts = word_starts(words);
  const auto behind = std::upper_bound(starts.begin(), starts.end(), first);
  const auto index = static_cast<std::uint64_t>(behind - starts.begin());
  if (index < spans_.longest()) pass.enter_words_before_the_document();
  pass.mask_words(std::span(starts).subspan(index - std::min(index, spans_.longest())));
}

// A unit is replaced in one manner throughout, by random tokens that differ from each other.
std::uint32_t Masker::replacement(std::uint64_t key, std::uint64_t document, std::uint64_t offset,
                                  std::uint64_t unit, std::uint32_t original) const {
  const std::uint32_t manner = philox(unit, document, key)[0];
  if (manner < mask_below_) return info_.special.mask;
  if (manner >= random_below_) return original;
  const PhiloxBlock bits = philox(offset, document, key);
  return ordinary_token(std::uint64_t{bits[1]} << 32 | bits[2]);
}

bool Masker::reserved(std::uint32_t id) const {
  return std::binary_search(info_.reserved_ids.begin(), info_.reserved_ids.end(), id);
}

// The k-th id that is not reserved is k + (number of reserved ids below it). For the j-th reserved
// id, r[j] - j ordinary ids lie below, which never decreases with j.
std::uint32_t Masker::ordinary_token(std::uint64_t random_bits) const {
  const std::vector<std::uint32_t>& reserved_ids = info_.reserved_ids;
  const std::uint64_t count = info_.vocab_size - reserved_ids.size();
  // The high half of a 128-bit product scales 64 random bits to [0, count) without a division.
  const std::uint64_t low = (random_bits & 0xFFFFFFFF) * count;
  const std::uint64_t k = ((random_bits >> 32) * count + (low >> 32)) >> 32;
  std::size_t below = 0, end = reserved_ids.size();
  while (below < end) {
    const std::size_t middle = (below + end) / 2;
    if (reserved_ids[middle] - middle <= k) {
      below = middle + 1;
    } else {
      end = middle;
    }
  }
  return static_cast<std::uint32_t>(k + below);
}

std::uint64_t mask_hash(std::uint64_t epoch, std::uint64_t document, std::uint64_t offset,
                        std::uint32_t replacement) {
  return hash_numbers(epoch, document, offset, replacement);
}

}  // namespace tupelo
