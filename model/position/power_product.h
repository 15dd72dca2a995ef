// Exact comparison of products of powers, for bucket limits that logarithms only approximate.
#pragma once

#include <cstdint>
#include <vector>

namespace tupelo {

using Natural = std::vector<std::uint32_t>;  // digits in base 2^32, the lowest first

// first^first_exponent * second^second_exponent, for factors > 0.
Natural power_product(std::int64_t first, std::int64_t first_exponent, std::int64_t second,
                      std::int64_t second_exponent);

bool at_least(const Natural& left, const Natural& right);

}  // namespace tupelo
