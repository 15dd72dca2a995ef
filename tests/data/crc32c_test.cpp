#include "data/crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

namespace tupelo::crc32c_test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  Bytes bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

Bytes random_bytes(std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// The definition, a bit at a time.
std::uint32_t by_definition(const Bytes& bytes) {
  std::uint32_t sum = 0xFFFFFFFF;
  for (const std::byte byte : bytes) {
    sum ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0x82F63B78u : 0u);
  }
  return ~sum;
}

// The vectors of RFC 3720, B.4, and the usual check value.
TEST(Crc32c, HasThePublishedValues) {
  Bytes rising(32), falling(32);
  for (std::size_t i = 0; i < 32; ++i) {
    rising[i] = static_cast<std::byte>(i);
    falling[i] = static_cast<std::byte>(31 - i);
  }
  const std::vector<std::pair<Bytes, std::uint32_t>> vectors = {
      {bytes_of("123456789"), 0xE3069283},
      {{}, 0},
      {Bytes(32, std::byte{0}), 0x8A9136AA},
      {Bytes(32, std::byte{0xFF}), 0x62A8AB43},
      {rising, 0x46DD794E},
      {falling, 0x113FDB5C}};
  for (const auto& [bytes, sum] : vectors) {
    EXPECT_EQ(crc32c(bytes), sum);
    EXPECT_EQ(crc32c_by_table(bytes), sum);
  }
}

TEST(Crc32c, FollowsItsDefinitionAtEveryLength) {
  for (std::size_t count = 0; count < 100; ++count) {
    const Bytes bytes = random_bytes(count);
    EXPECT_EQ(crc32c(bytes), by_definition(bytes)) << count;
    EXPECT_EQ(crc32c_by_table(bytes), by_definition(bytes)) << count;
  }
}

TEST(Crc32c, SumsBlocksOneByOne) {
  for (const std::size_t block : {8u, 1024u}) {
    for (std::size_t count = 0; count < 12 * block; count += block / 4 + 1) {
      const Bytes bytes = random_bytes(count);
      std::vector<std::uint32_t> sums((count + block - 1) / block + 1, 7);
      crc32c_of_blocks(bytes, block, sums.data());
      for (std::size_t b = 0; b + 1 < sums.size(); ++b) {
        const std::size_t end = std::min(count, (b + 1) * block);
        const Bytes part(bytes.begin() + static_cast<std::ptrdiff_t>(b * block),
                         bytes.begin() + static_cast<std::ptrdiff_t>(end));
        EXPECT_EQ(sums[b], by_definition(part)) << count << " " << b;
      }
      EXPECT_EQ(sums.back(), 7u) << "nothing is written past the last block";
    }
  }
}

}  // namespace
}  // namespace tupelo::crc32c_test
