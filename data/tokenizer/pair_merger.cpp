#include "data/tokenizer/pair_merger.h"

#include <algorithm>

namespace tupelo {
namespace {

// Compares a1 + a2 with b1 + b2 without building them.
int compare_joined(std::string_view a1, std::string_view a2, std::string_view b1,
                   std::string_view b2) {
  if (a1.size() > b1.size()) return -compare_joined(b1, b2, a1, a2);
  if (const int order = a1.compare(b1.substr(0, a1.size())); order != 0) return order;
  const std::string_view b_middle = b1.substr(a1.size());
  if (const int order = a2.substr(0, b_middle.size()).compare(b_middle); order != 0) return order;
  return a2.substr(b_middle.size()).compare(b2);
}

}  // namespace

PairMerger::Symbol PairMerger::symbol(std::string_view text) {
  const auto [entry, is_new] =
      numbers_.emplace(std::string(text), static_cast<Symbol>(texts_.size()));
  if (is_new) texts_.push_back(&entry->first);
  return entry->second;
}

void PairMerger::add_word(const std::vector<Symbol>& word, std::uint64_t count) {
  words_.push_back({symbols_.size(), static_cast<std::uint32_t>(word.size()), count});
  symbols_.insert(symbols_.end(), word.begin(), word.end());
}

std::string_view PairMerger::tail(Symbol symbol) const {
  std::string_view tail = text(symbol);
  if (tail.starts_with(continuation_)) tail.remove_prefix(continuation_.size());
  return tail;
}

bool PairMerger::worse(const Candidate& a, const Candidate& b) const {
  if (a.count != b.count) return a.count < b.count;
  if (ties_ == Ties::kByNumber) return key(a.left, a.right) > key(b.left, b.right);
  const std::string& left_a = text(a.left);
  const std::string& left_b = text(b.left);
  const int order = compare_joined(left_a, tail(a.right), left_b, tail(b.right));
  return order != 0 ? order > 0 : left_a > left_b;
}

std::optional<PairMerger::Merge> PairMerger::merge_next(std::uint64_t min_count) {
  if (!started_) start();
  const std::optional<Candidate> best = next_candidate(min_count);
  if (!best) return std::nullopt;
  const Symbol joined = symbol(text(best->left) + std::string(tail(best->right)));
  std::vector<std::uint32_t> places = std::move(pairs_[key(best->left, best->right)].words);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  changes_.clear();
  for (const std::uint32_t word : places) merge_in_word(word, *best, joined);
  for (const auto& [pair, change] : changes_) {
    Pair& counted = pairs_[pair];
    counted.count += static_cast<std::uint64_t>(change);
    if (counted.count == 0) {
      pairs_.erase(pair);
    } else if (change > 0) {
      queue_.push({counted.count, static_cast<Symbol>(pair >> 32), static_cast<Symbol>(pair)});
    }
  }
  return Merge{best->left, best->right, joined};
}

std::optional<PairMerger::Candidate> PairMerger::next_candidate(std::uint64_t min_count) {
  while (!queue_.empty()) {
    Candidate best = queue_.top();
    const auto pair = pairs_.find(key(best.left, best.right));
    const std::uint64_t count = pair == pairs_.end() ? 0 : pair->second.count;
    if (count == best.count && count >= min_count) return best;
    queue_.pop();
    if (count < best.count && count >= min_count) {
      best.count = count;
      queue_.push(best);
    }
  }
  return std::nullopt;
}

void PairMerger::start() {
  started_ = true;
  for (std::uint32_t i = 0; i < words_.size(); ++i) {
    count_pairs(words_[i], 1);
    const Symbol* at = &symbols_[words_[i].begin];
    for (std::uint32_t k = 1; k < words_[i].length; ++k) {
      pairs_[key(at[k - 1], at[k])].words.push_back(i);
    }
  }
  for (const auto& [pair, change] : changes_) {
    const auto count = static_cast<std::uint64_t>(change);
    pairs_[pair].count = count;
    queue_.push({count, static_cast<Symbol>(pair >> 32), static_cast<Symbol>(pair)});
  }
}

void PairMerger::merge_in_word(std::uint32_t index, const Candidate& pair, Symbol joined) {
  Word& word = words_[index];
  Symbol* const at = &symbols_[word.begin];
  const auto holds_pair = [&](std::uint32_t k) {
    return k + 1 < word.length && at[k] == pair.left && at[k + 1] == pair.right;
  };
  std::uint32_t first = 0;
  while (first < word.length && !holds_pair(first)) ++first;
  if (first == word.length) return;  // an earlier merge took one of the halves
  count_pairs(word, -1);
  std::uint32_t kept = first;
  for (std::uint32_t k = first; k < word.length; ++kept) {
    const bool here = holds_pair(k);
    at[kept] = here ? joined : at[k];
    k += here ? 2 : 1;
  }
  word.length = kept;
  count_pairs(word, 1);
  for (std::uint32_t k = 1; k < word.length; ++k) {
    if (at[k - 1] == joined || at[k] == joined) {
      pairs_[key(at[k - 1], at[k])].words.push_back(index);
    }
  }
}

void PairMerger::count_pairs(const Word& word, std::int64_t sign) {
  const Symbol* const at = symbols_.data() + word.begin;
  for (std::uint32_t k = 1; k < word.length; ++k) {
    changes_[key(at[k - 1], at[k])] += sign * static_cast<std::int64_t>(word.count);
  }
}

}  // namespace tupelo
