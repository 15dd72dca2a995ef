#include "model/position/power_product.h"

#include <algorithm>

namespace tupelo {

Natural power_product(std::int64_t first, std::int64_t first_exponent, std::int64_t second,
                      std::int64_t second_exponent) {
  Natural product{1};
  const auto multiply = [&product](std::int64_t factor, std::int64_t times) {
    for (std::int64_t i = 0; i < times; ++i) {
      std::uint64_t carry = 0;
      for (std::uint32_t& digit : product) {
        carry += std::uint64_t{digit} * static_cast<std::uint32_t>(factor);
        digit = static_cast<std::uint32_t>(carry);
        carry >>= 32;
      }
      if (carry != 0) {
        product.push_back(static_cast<std::uint32_t>(carry));
      }
    }
  };
  multiply(first, first_exponent);
  multiply(second, second_exponent);
  return product;
}

bool at_least(const Natural& left, const Natural& right) {
  if (left.size() != right.size()) {
    return left.size() > right.size();
  }
  return !std::lexicographical_compare(left.rbegin(), left.rend(), right.rbegin(), right.rend());
}

}  // namespace tupelo
