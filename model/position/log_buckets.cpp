#include "model/position/log_buckets.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "model/position/power_product.h"

namespace tupelo {

LogBuckets::LogBuckets(std::int64_t buckets, std::int64_t max_distance)
    : mid_(buckets / 2), farthest_(max_distance - 1) {
  if (buckets < 4 || buckets % 2 != 0 || max_distance < 2 || max_distance > 1 << 30) {
    throw std::invalid_argument("logarithmic buckets: buckets=" + std::to_string(buckets) +
                                " must be even and at least 4, and max_distance=" +
                                std::to_string(max_distance) + " at least 2");
  }
  // ln(n/mid) / ln(F/mid) * (mid-1) > k  <=>  n^(mid-1) > F^k mid^(mid-1-k)
  const std::int64_t steps = mid_ - 1;
  for (std::int64_t k = 1; k < steps && farthest_ > mid_; ++k) {
    const Natural bound = power_product(farthest_, k, mid_, steps - k);
    std::int64_t below = mid_, reached = farthest_;
    while (reached - below > 1) {
      const std::int64_t middle = below + (reached - below) / 2;
      (at_least(bound, power_product(middle, steps, 1, 0)) ? below : reached) = middle;
    }
    starts_.push_back(reached);
  }
}

std::int64_t LogBuckets::of(std::int64_t distance) const {
  std::int64_t bucket = std::min(std::abs(distance), farthest_);
  if (bucket > mid_) {
    bucket =
        mid_ + 1 + (std::upper_bound(starts_.begin(), starts_.end(), bucket) - starts_.begin());
  }
  return distance < 0 ? -bucket : bucket;
}

}  // namespace tupelo
