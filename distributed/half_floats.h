// The 16-bit floats as bits, without branches, so that loops over them are vectorised; the same
// bits as c10::BFloat16 and c10::Half for every number. Internal to distributed/.
#pragma once

#include <bit>
#include <cstdint>

namespace tupelo {

// By masks: compilers make branches of conditional expressions, and vectorise no loop with
// branches.
inline std::uint32_t choose(bool condition, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

inline float float_of_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// To nearest, ties to even.
inline std::uint16_t bfloat16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>(choose(is_nan, 0x7fc0u, rounded));
}

inline float float_of_float16(std::uint16_t value) {
  constexpr std::uint32_t kRebias = (127u - 15u) << 23;
  const auto magnitude = static_cast<std::uint32_t>(value & 0x7fffu);
  const std::uint32_t normal = (magnitude << 13) + kRebias;
  // Multiples of 2^-24.
  const auto subnormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24f);
  const std::uint32_t quiet = choose(magnitude > 0x7c00u, 0x400000u, 0u);
  const std::uint32_t not_finite = (normal + kRebias) | quiet;
  const std::uint32_t finite = choose(magnitude < 0x400u, subnormal, normal);
  const std::uint32_t unsigned_bits = choose(magnitude < 0x7c00u, finite, not_finite);
  return std::bit_cast<float>(unsigned_bits | (static_cast<std::uint32_t>(value & 0x8000u) << 16));
}

// To nearest, ties to even; what is 65520 or more becomes infinite.
inline std::uint16_t float16_of(float value) {
  constexpr std::uint32_t kRebias = (127u - 15u) << 23;
  constexpr std::uint32_t kHalf = std::bit_cast<std::uint32_t>(0.5f);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t shifted = magnitude - kRebias;
  const std::uint32_t normal = (shifted + 0xfffu + ((shifted >> 13) & 1u)) >> 13;
  // The last place of numbers from 0.5 is 2^-24, that of the subnormal results.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - kHalf;
  const std::uint32_t finite = choose(magnitude < 0x38800000u, subnormal, normal);
  const std::uint32_t not_finite = choose(magnitude > 0x7f800000u, 0x7e00u, 0x7c00u);
  const std::uint32_t result = choose(magnitude < 0x477ff000u, finite, not_finite);
  return static_cast<std::uint16_t>(result | ((bits >> 16) & 0x8000u));
}

}  // namespace tupelo
