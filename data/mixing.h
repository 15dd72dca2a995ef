// Hashes of small tuples of numbers, for keys and for ledgers that are sums of hashes.
#pragma once

#include <cstdint>

namespace tupelo {

// A bijection of 64-bit numbers in which every output bit depends on every input bit.
// Source: the finalizer of MurmurHash3 with David Stafford's constants "Mix13".
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Hash of the numbers in their order.
template <typename... Numbers>
constexpr std::uint64_t hash_numbers(Numbers... numbers) {
  std::uint64_t hash = 0x9E3779B97F4A7C15;
  ((hash = mix_bits(hash * 0x2127599BF4325C37 + static_cast<std::uint64_t>(numbers) + 1)), ...);
  return hash;
}

}  // namespace tupelo
