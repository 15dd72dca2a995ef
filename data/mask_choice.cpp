#include "data/mask_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "data/mixing.h"
#include "data/philox.h"

namespace tupelo {
namespace {

// Streams of the generator: 2 is the masker's.
constexpr std::uint64_t kChoice = 1;
constexpr std::uint64_t kLength = 3;

// Of a stream a block draws once for the arc and once for each span at most.
constexpr std::uint64_t kDrawsPerBlock = 256;
static_assert(4 * kDrawsPerBlock > kMaskBlock + 1);

// Spans are chosen whole where at least so many fit into a block.
constexpr std::uint64_t kSpansPerBlock = 16;

class Draws {
 public:
  Draws(std::uint64_t key, const WordBlock& block)
      : key_(key), document_(block.document), counter_(block.number * kDrawsPerBlock) {}

  std::uint64_t next() {
    if (used_ == 4) {
      words_ = philox(counter_++, document_, key_);
      used_ = 0;
    }
    return words_[used_++];
  }

 private:
  std::uint64_t key_, document_, counter_;
  std::size_t used_ = 4;
  PhiloxBlock words_{};
};

// Spans of a block: span i has the words first_[i] to first_[i + 1] - 1.
class Spans {
 public:
  Spans(const WordBlock& block, const SpanLaw& law, std::uint64_t length_key) : block_(block) {
    const std::size_t words = block.starts.size();
    if (law.longest() == 1) {
      count_ = words;
      std::iota(first_.begin(), first_.begin() + words + 1, std::uint16_t{0});
      return;
    }
    Draws draws(length_key, block);
    for (std::size_t word = 0; word < words;) {
      first_[count_++] = static_cast<std::uint16_t>(word);
      word = std::min(words, word + law.length(static_cast<std::uint32_t>(draws.next())));
      first_[count_] = static_cast<std::uint16_t>(word);
      longest_ = std::max(longest_, end(count_ - 1) - begin(count_ - 1));
    }
  }

  // In tokens; of single words it does not matter, and is 0.
  std::uint64_t longest() const { return longest_; }
  std::size_t count() const { return count_; }
  std::size_t first_word(std::size_t span) const { return first_[span]; }
  std::size_t end_word(std::size_t span) const { return first_[span + 1]; }
  std::uint64_t begin(std::size_t span) const { return block_.starts[first_[span]]; }
  std::uint64_t end(std::size_t span) const { return end_of_word(end_word(span) - 1); }
  std::uint64_t end_of_word(std::size_t word) const {
    return word + 1 < block_.starts.size() ? block_.starts[word + 1] : block_.end;
  }
  std::size_t span_at(std::uint64_t token) const {
    std::size_t low = 0, high = count_;
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (begin(middle) <= token ? low : high) = middle;
    }
    return low;
  }

 private:
  const WordBlock& block_;
  std::array<std::uint16_t, kMaskBlock + 1> first_;
  std::size_t count_ = 0;
  std::uint64_t longest_ = 0;
};

// Places on the circle are counted in 2^-32 tokens from where the arc begins.
class Arc {
 public:
  Arc(const WordBlock& block, const Spans& spans, std::uint64_t budget,
      std::vector<ChosenWord>& chosen)
      : block_(block),
        spans_(spans),
        budget_(budget),
        whole_spans_(spans.longest() * kSpansPerBlock <= block.end - block.starts.front()),
        chosen_(chosen) {}

  // `place_of` tells where on the circle an offset of the span is.
  template <typename Place>
  void add(std::size_t span, Place place_of) {
    if (whole_spans_ && place_of(spans_.begin(span)) >= budget_) return;
    for (std::size_t word = spans_.first_word(span); word < spans_.end_word(span); ++word) {
      const std::uint64_t begin = block_.starts[word];
      if (!whole_spans_ && place_of(begin) >= budget_) continue;
      chosen_.push_back({begin, spans_.end_of_word(word), spans_.begin(span)});
    }
  }

 private:
  const WordBlock& block_;
  const Spans& spans_;
  std::uint64_t budget_;
  bool whole_spans_;
  std::vector<ChosenWord>& chosen_;
};

// In those units.
std::uint64_t places(std::uint64_t tokens) { return tokens << 32; }

}  // namespace

MaskChoice::MaskChoice(const DataOptions& options)
    : spans_(options),
      seed_(options.seed),
      fraction_(static_cast<std::uint64_t>(std::llround(std::ldexp(options.mask_fraction, 32)))) {
  if (!(options.mask_fraction >= 0 && options.mask_fraction <= 1)) {
    throw std::invalid_argument("the mask fraction must lie between 0 and 1");
  }
}

void MaskChoice::choose(std::uint64_t epoch, const WordBlock& block,
                        std::vector<ChosenWord>& chosen) const {
  const Spans spans(block, spans_, hash_numbers(seed_, epoch, kLength));
  const std::uint64_t first = block.starts.front(), tokens = block.end - first;
  const std::uint64_t budget = tokens * fraction_;
  Draws draws(hash_numbers(seed_, epoch, kChoice), block);
  Arc arc(block, spans, budget, chosen);

  const std::uint64_t from = tokens * draws.next();
  const std::size_t cut = spans.span_at(first + (from >> 32));
  arc.add(cut, [&](std::uint64_t begin) {
    const std::uint64_t at = places(begin - first);
    return at >= from ? at - from : places(tokens) - from + at;
  });

  std::array<std::uint16_t, kMaskBlock> order;
  std::iota(order.begin(), order.begin() + spans.count(), std::uint16_t{0});
  std::copy(order.begin() + cut + 1, order.begin() + spans.count(), order.begin() + cut);
  const std::uint64_t others = spans.count() - 1;
  std::uint64_t place = places(spans.end(cut) - first) - from;
  for (std::uint64_t i = 0; i < others && place < budget; ++i) {
    std::swap(order[i], order[i + (draws.next() * (others - i) >> 32)]);
    const std::uint64_t begin_of_span = spans.begin(order[i]);
    arc.add(order[i], [&](std::uint64_t begin) { return place + places(begin - begin_of_span); });
    place += places(spans.end(order[i]) - begin_of_span);
  }
}

}  // namespace tupelo
