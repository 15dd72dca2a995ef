// DeBERTa-v2's buckets of signed distances: exact near by, logarithmic far away.
#pragma once

#include <cstdint>
#include <vector>

namespace tupelo {

// bucket(r) for r = query - key. With mid = buckets / 2 and n = min(|r|, max_distance - 1):
//   n <= mid: n;  else mid + ceil(ln(n/mid) / ln((max_distance-1)/mid) * (mid-1))
// with the sign of r, so between -(buckets-1) and buckets-1. Evaluated in integers, so the same
// everywhere. (microsoft/DeBERTa; transformers leaves out the minimum.)
class LogBuckets {
 public:
  // Throws std::invalid_argument unless buckets is even and >= 4 and max_distance >= 2.
  LogBuckets(std::int64_t buckets, std::int64_t max_distance);

  std::int64_t of(std::int64_t distance) const;

 private:
  std::int64_t mid_;
  std::int64_t farthest_;             // distances beyond share its bucket
  std::vector<std::int64_t> starts_;  // [k]: the smallest |r| of bucket mid + k + 2
};

}  // namespace tupelo
