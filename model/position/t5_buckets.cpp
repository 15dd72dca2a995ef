#include "model/position/t5_buckets.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "model/position/power_product.h"

namespace tupelo {

T5Buckets::T5Buckets(std::int64_t buckets, std::int64_t max_distance)
    : half_(buckets / 2), exact_(buckets / 4) {
  if (buckets < 4 || buckets % 2 != 0 || max_distance <= exact_ || max_distance > 1 << 30) {
    throw std::invalid_argument("T5 buckets: rel_bins=" + std::to_string(buckets) +
                                " must be even and at least 4, and max_distance=" +
                                std::to_string(max_distance) + " greater than rel_bins / 4");
  }
  // ln(n/e) / ln(M/e) * (half - e) >= k  <=>  n^(half-e) e^k >= M^k e^(half-e)
  const std::int64_t steps = half_ - exact_;
  for (std::int64_t k = 1; k < steps; ++k) {
    const Natural bound = power_product(max_distance, k, exact_, steps);
    std::int64_t below = exact_ - 1, reached = max_distance;
    while (reached - below > 1) {
      const std::int64_t middle = below + (reached - below) / 2;
      const bool enough = at_least(power_product(middle, steps, exact_, k), bound);
      (enough ? reached : below) = middle;
    }
    starts_.push_back(reached);
  }
}

std::int64_t T5Buckets::of(std::int64_t distance) const {
  const std::int64_t magnitude = std::abs(distance);
  const std::int64_t side = distance > 0 ? half_ : 0;
  if (magnitude < exact_) {
    return side + magnitude;
  }
  const auto passed = std::upper_bound(starts_.begin(), starts_.end(), magnitude) - starts_.begin();
  return side + exact_ + passed;
}

std::vector<std::int64_t> T5Buckets::line(std::int64_t tokens) const {
  std::vector<std::int64_t> buckets;
  for (std::int64_t distance = 1 - tokens; distance < tokens; ++distance) {
    buckets.push_back(of(distance));
  }
  return buckets;
}

}  // namespace tupelo
