#include "data/corpus_statistics.h"

#include <algorithm>
#include <memory>

#include "data/row_plan.h"

namespace tupelo {
namespace {

using Lengths = std::vector<std::uint32_t>;

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

Lengths sorted_lengths(const std::vector<std::uint64_t>& offsets) {
  Lengths lengths(offsets.size() - 1);
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    lengths[d] = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(offsets[d + 1] - offsets[d], UINT32_MAX));
  }
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

std::uint64_t percentile(const Lengths& sorted, std::uint64_t percent) {
  const std::uint64_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[rank - 1];
}

LengthStatistics::Above above(const Lengths& sorted, std::uint64_t length, double tokens) {
  const auto first = std::upper_bound(sorted.begin(), sorted.end(), length);
  double inside = 0;
  for (auto at = first; at != sorted.end(); ++at) inside += *at;
  return {length,
          share(static_cast<double>(sorted.end() - first), static_cast<double>(sorted.size())),
          share(inside, tokens)};
}

// Tokens of all rows, with [CLS] and [SEP].
std::uint64_t filled_places(const std::vector<std::uint64_t>& offsets, Packing packing,
                            std::uint64_t length, std::uint64_t rows) {
  const std::uint64_t documents = offsets.size() - 1, tokens = offsets.back();
  if (packing == Packing::kFull) return tokens + documents - 1 + 2 * rows;
  std::uint64_t sequences = 0;
  for (std::size_t d = 0; d < documents; ++d) {
    sequences += (offsets[d + 1] - offsets[d] + length - 3) / (length - 2);
  }
  return tokens + 2 * sequences;
}

}  // namespace

LengthStatistics length_statistics(const std::vector<std::uint64_t>& document_offsets) {
  LengthStatistics statistics;
  const Lengths sorted = sorted_lengths(document_offsets);
  if (sorted.empty()) return statistics;
  statistics.documents = sorted.size();
  statistics.tokens = document_offsets.back();
  statistics.shortest = sorted.front();
  statistics.longest = sorted.back();
  const auto tokens = static_cast<double>(statistics.tokens);
  statistics.mean = tokens / static_cast<double>(sorted.size());
  for (const int percent : {1, 5, 10, 25, 50, 75, 90, 95, 99}) {
    statistics.percentiles.push_back(
        {percent, percentile(sorted, static_cast<std::uint64_t>(percent))});
  }
  for (const std::uint64_t length : {128, 512}) {
    statistics.above.push_back(above(sorted, length, tokens));
  }
  return statistics;
}

std::vector<PaddingEstimate> padding_estimates(const std::vector<std::uint64_t>& document_offsets) {
  std::vector<PaddingEstimate> estimates;
  if (document_offsets.size() < 2) return estimates;
  const auto documents = std::make_shared<DocumentOffsets>(document_offsets);
  for (const std::int64_t length : {128, 512}) {
    for (const Packing packing : {Packing::kFull, Packing::kDocument, Packing::kBestFit}) {
      const std::uint64_t rows = RowPlan(documents, packing, length).rows();
      const auto places = static_cast<double>(rows) * static_cast<double>(length);
      const auto filled = static_cast<double>(
          filled_places(document_offsets, packing, static_cast<std::uint64_t>(length), rows));
      estimates.push_back({length, packing, rows, std::max(0.0, 1 - filled / places)});
    }
  }
  return estimates;
}

}  // namespace tupelo
