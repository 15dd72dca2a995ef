// The bits of LibTorch's 16-bit floats.
#include "distributed/half_floats.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace tupelo {
namespace {

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

// All that lie near the borders between 16-bit numbers, of both kinds, of every magnitude.
template <typename Check>
void for_many_floats(Check check) {
  for (std::uint32_t high = 0; high < 0x80000u; ++high) {
    for (const std::uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x1fffu}) {
      check(std::bit_cast<float>((high << 13) | low));
    }
  }
}

TEST(HalfFloats, BecomeTheFloatsThatTheyAre) {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    ASSERT_EQ(bits_of(float_of_bfloat16(half)),
              bits_of(static_cast<float>(c10::BFloat16(half, c10::BFloat16::from_bits()))))
        << bits;
    const auto expected = static_cast<float>(c10::Half(half, c10::Half::from_bits()));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(float_of_float16(half))) << bits;
    } else {
      ASSERT_EQ(bits_of(float_of_float16(half)), bits_of(expected)) << bits;
    }
  }
}

TEST(HalfFloats, AreRoundedAsLibTorchDoes) {
  for_many_floats([](float value) {
    ASSERT_EQ(bfloat16_of(value), c10::BFloat16(value).x) << bits_of(value);
    ASSERT_EQ(float16_of(value), c10::Half(value).x) << bits_of(value);
  });
}

}  // namespace
}  // namespace tupelo
