#include "data/masker.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "data/mixing.h"
#include "data/philox.h"

namespace tupelo {
namespace {

// Streams of the generator: one coin per token, and what a chosen token becomes.
constexpr std::uint64_t kChoice = 1;
constexpr std::uint64_t kReplacement = 2;

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
      whole_word_(options.masking == Masking::kWholeWord),
      chosen_below_(of_all_words(options.mask_fraction)),
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
  if (info.vocab_size <= info.reserved_ids.size()) {
    throw CorpusError("the vocabulary has no token besides special and unused ones");
  }
}

void Masker::mask(std::uint64_t epoch, std::uint64_t document, std::uint64_t first,
                  std::span<std::uint32_t> tokens, std::span<const std::uint8_t> word_starts,
                  std::uint64_t first_word, std::vector<MaskedToken>& masked) const {
  Coins coins(hash_numbers(seed_, epoch, kChoice), document);
  const std::uint64_t replacement_key = hash_numbers(seed_, epoch, kReplacement);
  std::uint64_t word = first_word;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::uint64_t offset = first + i;
    if (!whole_word_ || word_starts[i] != 0) word = offset;
    if (coins.at(word) >= chosen_below_ || reserved(tokens[i])) continue;
    const std::uint32_t original = tokens[i];
    tokens[i] = replacement(replacement_key, document, offset, word, original);
    masked.push_back({static_cast<std::uint32_t>(i), original, tokens[i]});
  }
}

// A word is replaced in one manner throughout, by random tokens that differ from each other.
std::uint32_t Masker::replacement(std::uint64_t key, std::uint64_t document, std::uint64_t offset,
                                  std::uint64_t word, std::uint32_t original) const {
  const std::uint32_t manner = philox(word, document, key)[0];
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
