#include "data/tokenizer/word_counts.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <stdexcept>
#include <utility>

#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

// A character may have been counted as a word, too.
void add_up_equal(std::vector<CountedWord>& sorted) {
  std::size_t kept = 0;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].word == sorted[kept].word) {
      sorted[kept].count += sorted[i].count;
    } else if (++kept != i) {
      sorted[kept] = std::move(sorted[i]);
    }
  }
  if (!sorted.empty()) sorted.resize(kept + 1);
}

}  // namespace

void WordCounts::add_word(std::string_view word) {
  const auto found = words_.find(word);
  if (found != words_.end()) {
    ++found->second;
  } else {
    words_.emplace(word, 1);
  }
}

void WordCounts::add_character(char32_t code_point) {
  if (characters_.empty()) characters_.resize(0x110000);
  ++characters_[code_point];
}

void WordCounts::add(const WordCounts& other) {
  if (characters_.empty()) characters_.resize(other.characters_.size());
  for (std::size_t c = 0; c < other.characters_.size(); ++c) characters_[c] += other.characters_[c];
  for (const auto& [word, count] : other.words_) words_[word] += count;
}

void WordCounts::add(const CountedWord& word) { words_[word.word] += word.count; }

std::vector<CountedWord> WordCounts::sorted() const {
  std::vector<CountedWord> all;
  all.reserve(words_.size());
  for (const auto& [word, count] : words_) all.push_back({word, count});
  for (std::size_t c = 0; c < characters_.size(); ++c) {
    if (characters_[c] != 0) all.push_back({to_utf8(static_cast<char32_t>(c)), characters_[c]});
  }
  std::sort(all.begin(), all.end(),
            [](const CountedWord& a, const CountedWord& b) { return a.word < b.word; });
  add_up_equal(all);
  return all;
}

ParallelWordCounts::ParallelWordCounts(int threads, CountText count_text)
    : threads_(static_cast<std::size_t>(std::max(threads, 1))),
      count_text_(std::move(count_text)),
      counts_(1) {
  if (threads < 1) {
    throw std::invalid_argument("threads is " + std::to_string(threads) +
                                ", but the vocabulary trainer needs at least 1");
  }
}

void ParallelWordCounts::add(const std::vector<std::string>& texts) {
  std::size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  // A thread costs as much as counting some kilobytes, and its counters need 9 MB.
  constexpr std::size_t kBytesPerThread = std::size_t{64} << 10;
  const std::size_t threads = std::clamp<std::size_t>(bytes / kBytesPerThread, 1, threads_);
  if (counts_.size() < threads) counts_.resize(threads);

  std::atomic<std::size_t> next{0};
  const auto count = [&](WordCounts& counts) {
    for (std::size_t i = next++; i < texts.size(); i = next++) count_text_(texts[i], counts);
  };
  std::vector<std::future<void>> others;
  for (std::size_t t = 1; t < threads; ++t) {
    others.push_back(std::async(std::launch::async, count, std::ref(counts_[t])));
  }
  count(counts_[0]);
  for (std::future<void>& other : others) other.get();
}

void ParallelWordCounts::add(const std::vector<CountedWord>& words) {
  for (const CountedWord& word : words) counts_.front().add(word);
}

std::vector<CountedWord> ParallelWordCounts::sorted() const {
  WordCounts all;
  for (const WordCounts& part : counts_) all.add(part);
  return all.sorted();
}

}  // namespace tupelo
