// How long the documents of a corpus are, and what that means for rows.
#pragma once

#include <cstdint>
#include <vector>

#include "data/data_options.h"

namespace tupelo {

struct LengthStatistics {
  struct Percentile {
    int percent;
    std::uint64_t tokens;  // the shortest length that this share of the documents does not exceed
  };
  struct Above {
    std::uint64_t length;
    double documents, tokens;  // shares: of documents longer than this, of the tokens in them
  };
  std::uint64_t documents = 0, tokens = 0;
  std::uint64_t shortest = 0, longest = 0;
  double mean = 0;
  std::vector<Percentile> percentiles;  // 1, 5, 10, 25, 50, 75, 90, 95, 99
  std::vector<Above> above;             // 128, 512
};

struct PaddingEstimate {
  std::int64_t sequence_length;
  Packing packing;
  std::uint64_t rows;
  double padding;  // share of the places in full-length rows that hold no token
};

// All zeros and empty without documents. `document_offsets` as ShardedCorpus has them. 4 bytes of
// memory a document.
LengthStatistics length_statistics(const std::vector<std::uint64_t>& document_offsets);

// For rows of 128 and 512 tokens, and each packing.
std::vector<PaddingEstimate> padding_estimates(const std::vector<std::uint64_t>& document_offsets);

}  // namespace tupelo
