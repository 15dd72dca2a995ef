// T5's buckets of signed distances: exact near by, logarithmic far away.
#pragma once

#include <cstdint>
#include <vector>

namespace tupelo {

// What an option that counts buckets may be, for people.
inline constexpr const char* kBucketCounts = "an even integer from 4 to 1048576";

// bucket(r) for r = key - query, bidirectional. With half = buckets / 2 and exact = half / 2:
//   |r| < exact: |r|;  else min(half - 1, exact + floor(ln(|r|/exact) / ln(max_distance/exact) *
//   (half - exact)))
// plus half when r > 0; bucket `half` itself is never used. Evaluated in integers, so the same
// everywhere.
class T5Buckets {
 public:
  // Throws std::invalid_argument unless buckets is even and >= 4 and max_distance > buckets / 4.
  T5Buckets(std::int64_t buckets, std::int64_t max_distance);

  std::int64_t of(std::int64_t distance) const;
  // of(r) for r = -(tokens-1) .. tokens-1.
  std::vector<std::int64_t> line(std::int64_t tokens) const;

 private:
  std::int64_t half_;
  std::int64_t exact_;
  std::vector<std::int64_t> starts_;  // [k]: the smallest |r| of bucket exact + k + 1
};

}  // namespace tupelo
