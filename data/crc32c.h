// CRC-32C (Castagnoli): the checksum of iSCSI, ext4 and SSE 4.2, reflected, polynomial 0x1EDC6F41,
// starting from and finally inverted with all ones. "123456789" has 0xE3069283.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tupelo {

// By the processor's own instruction where it has one.
std::uint32_t crc32c(std::span<const std::byte> bytes);

// The checksum of each block of `block_bytes` (a positive multiple of 8) of `bytes`, the last one
// shorter where they do not fill it, into as many `sums`. Several blocks at a time, so faster than
// one by one.
void crc32c_of_blocks(std::span<const std::byte> bytes, std::size_t block_bytes,
                      std::uint32_t* sums);

// The same without the instruction, as on processors that lack it.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes);

}  // namespace tupelo
