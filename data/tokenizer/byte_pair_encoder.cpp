#include "data/tokenizer/byte_pair_encoder.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace tupelo {
namespace {

constexpr std::size_t kShort = 32;  // bytes; beyond this a heap finds the least rank sooner

std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
  return std::uint64_t{left} << 32 | right;
}

std::size_t slot_of(std::uint64_t pair, std::size_t slots) {
  pair *= 0x9E3779B97F4A7C15u;
  return static_cast<std::size_t>(pair ^ pair >> 32) & (slots - 1);
}

}  // namespace

BytePairEncoder::BytePairEncoder(const std::array<std::uint32_t, 256>& byte_ids,
                                 const std::vector<Rule>& rules,
                                 const std::vector<std::string>& bytes_of_id)
    : byte_ids_(byte_ids),
      table_(std::bit_ceil(2 * rules.size() + 2)),
      byte_pairs_(65536),
      whole_tokens_(std::vector<std::string>{}) {
  for (std::size_t rank = 0; rank < rules.size(); ++rank) {
    add_rule(rules[rank], static_cast<std::uint32_t>(rank));
    const std::string& bytes = bytes_of_id[rules[rank].joined];
    for (std::size_t i = 1; i < bytes.size(); ++i)
      inside_tokens_.set(bigram(bytes[i - 1], bytes[i]));
  }
  for (std::size_t left = 0; left < 256; ++left) {
    for (std::size_t right = 0; right < 256; ++right) {
      byte_pairs_[left << 8 | right] = find(byte_ids_[left], byte_ids_[right]);
    }
  }
  add_whole_tokens(rules, bytes_of_id);
}

void BytePairEncoder::add_rule(const Rule& rule, std::uint32_t rank) {
  const std::uint64_t pair = pair_of(rule.left, rule.right);
  std::size_t slot = slot_of(pair, table_.size());
  while (table_[slot].join.rank != kNoRank) slot = (slot + 1) & (table_.size() - 1);
  table_[slot] = {pair, {rank, rule.joined}};
}

void BytePairEncoder::add_whole_tokens(const std::vector<Rule>& rules,
                                       const std::vector<std::string>& bytes_of_id) {
  std::vector<std::uint32_t> candidates(byte_ids_.begin(), byte_ids_.end());
  for (const Rule& rule : rules) candidates.push_back(rule.joined);
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  std::vector<std::string> keys;
  Scratch scratch;
  std::vector<std::uint32_t> ids;
  for (const std::uint32_t id : candidates) {
    ids.clear();
    encode(bytes_of_id[id], scratch, ids);
    if (ids.size() != 1) continue;
    keys.push_back(bytes_of_id[id]);
    whole_ids_.push_back(id);
  }
  whole_tokens_ = DoubleArray(keys);
}

BytePairEncoder::Join BytePairEncoder::find(std::uint32_t left, std::uint32_t right) const {
  const std::uint64_t pair = pair_of(left, right);
  std::size_t slot = slot_of(pair, table_.size());
  while (table_[slot].join.rank != kNoRank) {
    if (table_[slot].pair == pair) return table_[slot].join;
    slot = (slot + 1) & (table_.size() - 1);
  }
  return {};
}

void BytePairEncoder::encode(std::string_view word, Scratch& scratch,
                             std::vector<std::uint32_t>& ids) const {
  if (const std::uint32_t whole = whole_tokens_.find(word); whole != DoubleArray::kNone) {
    ids.push_back(whole_ids_[whole]);
    return;
  }
  std::size_t begin = 0;
  for (std::size_t i = 1; i < word.size(); ++i) {
    if (inside_tokens_[bigram(word[i - 1], word[i])]) continue;
    encode_piece(word.substr(begin, i - begin), scratch, ids);
    begin = i;
  }
  encode_piece(word.substr(begin), scratch, ids);
}

void BytePairEncoder::encode_piece(std::string_view piece, Scratch& scratch,
                                   std::vector<std::uint32_t>& ids) const {
  if (piece.size() == 1) {
    ids.push_back(byte_ids_[static_cast<unsigned char>(piece.front())]);
  } else if (const std::uint32_t whole = whole_tokens_.find(piece); whole != DoubleArray::kNone) {
    ids.push_back(whole_ids_[whole]);
  } else if (piece.size() <= kShort) {
    join_short(piece, ids);
  } else {
    join_long(piece, scratch, ids);
  }
}

void BytePairEncoder::join_short(std::string_view piece, std::vector<std::uint32_t>& ids) const {
  std::uint32_t tokens[kShort];
  Join joins[kShort];  // of a token and the one behind it
  std::size_t size = piece.size();
  for (std::size_t i = 0; i < size; ++i) {
    tokens[i] = byte_ids_[static_cast<unsigned char>(piece[i])];
    joins[i] = i + 1 < size ? byte_pairs_[bigram(piece[i], piece[i + 1])] : Join{};
  }
  while (size > 1) {
    const auto* const best = std::min_element(
        joins, joins + size, [](const Join& a, const Join& b) { return a.rank < b.rank; });
    if (best->rank == kNoRank) break;
    const auto at = static_cast<std::size_t>(best - joins);
    tokens[at] = best->joined;
    --size;
    std::copy(tokens + at + 2, tokens + size + 1, tokens + at + 1);
    std::copy(joins + at + 1, joins + size + 1, joins + at);
    if (at + 1 < size) joins[at] = find(tokens[at], tokens[at + 1]);
    if (at > 0) joins[at - 1] = find(tokens[at - 1], tokens[at]);
  }
  ids.insert(ids.end(), tokens, tokens + size);
}

// Tokens form a list; the heap holds (rank, place) of every pair, and of pairs that are gone, which
// are known by a rank that is no longer their place's.
void BytePairEncoder::join_long(std::string_view piece, Scratch& scratch,
                                std::vector<std::uint32_t>& ids) const {
  std::vector<std::uint32_t>& tokens = scratch.ids;
  std::vector<std::uint32_t>& joined = scratch.joined;
  std::vector<std::uint32_t>& previous = scratch.previous;
  std::vector<std::uint32_t>& next = scratch.next;
  std::vector<std::uint32_t>& ranks = scratch.ranks;
  std::vector<std::uint64_t>& heap = scratch.heap;
  const auto size = static_cast<std::uint32_t>(piece.size());
  for (auto* list : {&tokens, &joined, &previous, &next, &ranks}) list->resize(size);
  heap.clear();
  for (std::uint32_t i = 0; i < size; ++i) {
    tokens[i] = byte_ids_[static_cast<unsigned char>(piece[i])];
    const Join join = i + 1 < size ? byte_pairs_[bigram(piece[i], piece[i + 1])] : Join{};
    ranks[i] = join.rank;
    joined[i] = join.joined;
    previous[i] = i - 1;
    next[i] = i + 1;
    if (join.rank != kNoRank) heap.push_back(pair_of(join.rank, i));
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto renew = [&](std::uint32_t at) {
    const Join join = next[at] < size ? find(tokens[at], tokens[next[at]]) : Join{};
    ranks[at] = join.rank;
    joined[at] = join.joined;
    if (join.rank == kNoRank) return;
    heap.push_back(pair_of(join.rank, at));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    const std::uint64_t least = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    const auto at = static_cast<std::uint32_t>(least);
    if (ranks[at] != least >> 32) continue;
    const std::uint32_t gone = next[at];
    tokens[at] = joined[at];
    ranks[gone] = kNoRank;
    next[at] = next[gone];
    if (next[at] < size) previous[next[at]] = at;
    renew(at);
    if (at > 0) renew(previous[at]);
  }
  for (std::uint32_t i = 0; i < size; i = next[i]) ids.push_back(tokens[i]);
}

}  // namespace tupelo
