#include "data/crc32c.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace tupelo {
namespace {

constexpr std::uint32_t kReflectedPolynomial = 0x82F63B78;

// Row k holds what a byte does to the checksum when k more bytes follow it.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables = {};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) * kReflectedPolynomial);
    tables[0][byte] = sum;
  }
  for (std::size_t row = 1; row < tables.size(); ++row) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[row - 1][byte];
      tables[row][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

static_assert(std::endian::native == std::endian::little,
              "eight bytes at a time, the first lowest");

std::uint64_t eight_bytes(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

void blocks_by_table(std::span<const std::byte> bytes, std::size_t block_bytes,
                     std::uint32_t* sums) {
  for (; !bytes.empty(); ++sums) {
    const std::size_t block = std::min(block_bytes, bytes.size());
    *sums = crc32c_by_table(bytes.first(block));
    bytes = bytes.subspan(block);
  }
}

#if defined(__x86_64__)

// The instruction takes three cycles but can begin every cycle: neighbouring blocks hide its
// latency, and unlike parts of one block need no joining.
template <std::size_t kLanes>
__attribute__((target("sse4.2"))) void blocks_side_by_side(const std::byte* bytes,
                                                           std::size_t block_bytes,
                                                           std::uint32_t* sums) {
  std::uint64_t lanes[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = 0xFFFFFFFF;
  for (std::size_t at = 0; at < block_bytes; at += 8) {
#pragma GCC unroll 4
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = _mm_crc32_u64(lanes[lane], eight_bytes(bytes + lane * block_bytes + at));
    }
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    sums[lane] = ~static_cast<std::uint32_t>(lanes[lane]);
  }
}

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0xFFFFFFFF;
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) sum = _mm_crc32_u64(sum, eight_bytes(&bytes[at]));
  for (; at < bytes.size(); ++at) {
    sum = _mm_crc32_u8(static_cast<std::uint32_t>(sum), static_cast<std::uint8_t>(bytes[at]));
  }
  return ~static_cast<std::uint32_t>(sum);
}

void blocks_by_instruction(std::span<const std::byte> bytes, std::size_t block_bytes,
                           std::uint32_t* sums) {
  constexpr std::size_t kLanes = 4;
  const std::byte* at = bytes.data();
  std::size_t whole = bytes.size() / block_bytes;
  for (; whole >= kLanes; whole -= kLanes, at += kLanes * block_bytes, sums += kLanes) {
    blocks_side_by_side<kLanes>(at, block_bytes, sums);
  }
  if (whole == 3) blocks_side_by_side<3>(at, block_bytes, sums);
  if (whole == 2) blocks_side_by_side<2>(at, block_bytes, sums);
  if (whole == 1) blocks_side_by_side<1>(at, block_bytes, sums);
  const std::span<const std::byte> rest = bytes.last(bytes.size() % block_bytes);
  if (!rest.empty()) sums[whole] = by_instruction(rest);
}

bool has_instruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}

#else

bool has_instruction() { return false; }
std::uint32_t by_instruction(std::span<const std::byte> bytes) { return crc32c_by_table(bytes); }
void blocks_by_instruction(std::span<const std::byte> bytes, std::size_t block_bytes,
                           std::uint32_t* sums) {
  blocks_by_table(bytes, block_bytes, sums);
}

#endif

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) {
  std::uint32_t sum = 0xFFFFFFFF;
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    const std::uint64_t word = eight_bytes(&bytes[at]) ^ sum;
    sum = 0;
    for (std::size_t i = 0; i < 8; ++i) sum ^= kTables[7 - i][(word >> (8 * i)) & 0xFF];
  }
  for (; at < bytes.size(); ++at) {
    sum = (sum >> 8) ^ kTables[0][(sum ^ static_cast<std::uint32_t>(bytes[at])) & 0xFF];
  }
  return ~sum;
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  return has_instruction() ? by_instruction(bytes) : crc32c_by_table(bytes);
}

void crc32c_of_blocks(std::span<const std::byte> bytes, std::size_t block_bytes,
                      std::uint32_t* sums) {
  if (has_instruction()) return blocks_by_instruction(bytes, block_bytes, sums);
  blocks_by_table(bytes, block_bytes, sums);
}

}  // namespace tupelo
