#include "data/sentence_pairs.h"

#include <algorithm>

#include "data/mixing.h"
#include "data/philox.h"

namespace tupelo {
namespace {

// Stream of the generator; the masker has 1 to 3.
constexpr std::uint64_t kPairs = 4;

}  // namespace

void require_sentence_starts(const CorpusInfo& info) {
  if (info.sentence_rules > 0) return;
  throw CorpusError(
      "sentence pairs need to know where sentences begin, and the corpus does not say: prepare it "
      "with sentence starts");
}

SentencePairs::SentencePairs(const ShardedCorpus& corpus, const RowPlan& plan,
                             const DataOptions& options)
    : corpus_(corpus),
      plan_(plan),
      seed_(options.seed),
      anew_(options.pair_draw == PairDraw::kDynamic) {
  require_sentence_starts(corpus.info());
}

PairedRow SentencePairs::row(std::uint64_t row, std::uint64_t epoch) {
  const RowPlan::Piece place = plan_.pieces(row).front();
  const std::uint64_t document = place.document;
  const Edge begin = edge(document, place.first);
  const Edge end = edge(document, place.first + place.count);
  const RowPlan::Piece whole = {document, begin.offset, end.offset - begin.offset, false};
  if (!begin.between_sentences || !end.between_sentences) return {{whole}, {}};
  find_starts(document, begin.offset + 1, end.offset);
  if (starts_.empty()) return {{whole}, {}};

  const PhiloxBlock bits =
      philox(begin.offset, document, hash_numbers(seed_, anew_ ? epoch : 0, kPairs));
  // Scales 32 random bits to [0, starts) without a division.
  const std::uint64_t cut = starts_[std::uint64_t{bits[1]} * starts_.size() >> 32];
  RowPlan::Piece first = {document, begin.offset, cut - begin.offset, false};
  RowPlan::Piece second = {document, cut, end.offset - cut, false};
  const bool swapped = bits[0] >> 31 != 0;
  if (swapped) std::swap(first, second);
  first.separator = true;
  return {{first, second}, swapped};
}

SentencePairs::Edge SentencePairs::edge(std::uint64_t document, std::uint64_t place) {
  const std::uint64_t length = corpus_.length(document);
  if (place == 0 || place == length) return {place, true};
  find_starts(document, place - std::min(place, plan_.slack()), place + 1);
  if (starts_.empty()) return {place, false};
  return {starts_.back(), true};
}

void SentencePairs::find_starts(std::uint64_t document, std::uint64_t first, std::uint64_t end) {
  starts_.clear();
  if (first >= end) return;
  flags_.resize(end - first);
  corpus_.read_sentence_starts(document, first, end - first, flags_.data());
  for (std::uint64_t i = 0; i < flags_.size(); ++i) {
    if (flags_[i] != 0) starts_.push_back(first + i);
  }
}

}  // namespace tupelo
