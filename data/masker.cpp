#include "data/masker.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>

#include "data/mixing.h"
#include "data/philox.h"

namespace tupelo {
namespace {

// Stream of the generator: what a chosen token becomes.
constexpr std::uint64_t kReplacement = 2;

constexpr std::int64_t kMostWordTokens = 1024;

std::uint64_t of_all_words(double share) {
  return static_cast<std::uint64_t>(std::llround(std::ldexp(share, 32)));
}

bool is_share(double value) { return value >= 0 && value <= 1; }

constexpr std::uint64_t kNotChosen = ~std::uint64_t{0};

std::uint64_t block_of(std::uint64_t offset) { return offset / kMaskBlock; }

}  // namespace

Masker::Masker(const CorpusInfo& info, const DataOptions& options)
    : info_(info),
      seed_(options.seed),
      masking_(options.masking),
      unit_(options.masking == Masking::kToken ? MaskUnit::kToken : options.mask_unit),
      choice_(options),
      longest_word_(static_cast<std::uint64_t>(options.longest_word_tokens)),
      mask_below_(of_all_words(options.mask_token_share)),
      random_below_(of_all_words(options.mask_token_share + options.random_token_share)) {
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

// From the first block with a word that may reach the tokens to the last with one that begins among
// them. Whether a word that begins in a block is too long shows within as many tokens behind it as
// it may have, and whether one reaches into the block from outside, within as many before.
TokenRange Masker::flags_for(TokenRange tokens, std::uint64_t length) const {
  const std::uint64_t reach = tokens.first - std::min(tokens.first, longest_word_ - 1);
  const std::uint64_t first = block_of(reach) * kMaskBlock;
  const std::uint64_t end = (block_of(tokens.end - 1) + 1) * kMaskBlock;
  return {first - std::min(first, longest_word_), std::min(length, end + longest_word_)};
}

// Offsets where words begin, those of a word that is too long one by one. The flags may begin or
// end inside a word: what was seen of it is then longer than a word may be, or too far away to
// matter.
std::vector<std::uint64_t> Masker::word_starts(const WordFlags& words) const {
  const std::size_t count = words.starts.size();
  std::vector<std::uint64_t> starts(count + 1);
  std::size_t found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    starts[found] = words.first + i;
    found += words.starts[i] != 0 ? 1 : 0;
  }
  starts.resize(found);
  std::uint64_t longest = 0, begin = words.first;
  for (const std::uint64_t start : starts) {
    longest = std::max(longest, start - begin);
    begin = start;
  }
  longest = std::max(longest, words.first + count - begin);
  return longest < longest_word_ ? starts : split_starts(words);
}

std::vector<std::uint64_t> Masker::split_starts(const WordFlags& words) const {
  const std::size_t count = words.starts.size();
  std::vector<std::uint64_t> starts;
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

std::vector<ChosenWord> Masker::choose_words(std::uint64_t epoch, std::uint64_t document,
                                             std::uint64_t length, TokenRange tokens,
                                             const WordFlags& words) const {
  const std::vector<std::uint64_t> starts = word_starts(words);
  const auto behind = std::upper_bound(starts.begin(), starts.end(), tokens.first);
  if (behind == starts.begin()) throw std::logic_error("word flags begin behind the tokens");
  std::uint64_t number = block_of(*std::prev(behind));
  auto begin = std::lower_bound(starts.begin(), behind, number * kMaskBlock);
  std::vector<ChosenWord> chosen;
  chosen.reserve(kMaskBlock);
  for (; number <= block_of(tokens.end - 1); ++number) {
    const auto end = std::lower_bound(begin, starts.end(), (number + 1) * kMaskBlock);
    if (begin == end) continue;
    choice_.choose(epoch,
                   {.document = document,
                    .number = number,
                    .starts = {begin, end},
                    .end = end == starts.end() ? length : *end},
                   chosen);
    begin = end;
  }
  return chosen;
}

std::vector<ChosenWord> Masker::choose_tokens(std::uint64_t epoch, std::uint64_t document,
                                              std::uint64_t length, TokenRange tokens) const {
  std::vector<ChosenWord> chosen;
  chosen.reserve(kMaskBlock);
  std::array<std::uint64_t, kMaskBlock> starts;
  for (std::uint64_t number = block_of(tokens.first); number <= block_of(tokens.end - 1);
       ++number) {
    const std::uint64_t begin = number * kMaskBlock;
    const std::uint64_t end = std::min(begin + kMaskBlock, length);
    std::iota(starts.begin(), starts.begin() + static_cast<std::ptrdiff_t>(end - begin), begin);
    choice_.choose(epoch,
                   {.document = document,
                    .number = number,
                    .starts = std::span(starts).first(end - begin),
                    .end = end},
                   chosen);
  }
  return chosen;
}

void Masker::mask(std::uint64_t epoch, std::uint64_t document, std::uint64_t length,
                  std::uint64_t first, std::span<std::uint32_t> tokens, const WordFlags& words,
                  std::vector<MaskedToken>& masked) const {
  if (tokens.empty()) return;
  const TokenRange range{first, first + tokens.size()};
  std::vector<std::uint64_t> units(tokens.size(), kNotChosen);
  for (const ChosenWord& word : needs_words() ? choose_words(epoch, document, length, range, words)
                                              : choose_tokens(epoch, document, length, range)) {
    const std::uint64_t end = std::min(word.end, range.end);
    for (std::uint64_t offset = std::max(word.begin, first); offset < end; ++offset) {
      units[offset - first] = unit_ == MaskUnit::kToken  ? offset
                              : unit_ == MaskUnit::kWord ? word.begin
                                                         : word.span;
    }
  }
  const std::uint64_t key = hash_numbers(seed_, epoch, kReplacement);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::uint32_t original = tokens[i];
    if (units[i] == kNotChosen || reserved(original)) continue;
    tokens[i] = replacement(key, document, first + i, units[i], original);
    masked.push_back({static_cast<std::uint32_t>(i), original, tokens[i]});
  }
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
