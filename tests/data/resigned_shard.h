// What an author of a harmful shard would do: make its checksums and digests agree with it.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "data/content_digest.h"
#include "data/crc32c.h"
#include "data/shard.h"

namespace tupelo {

// `bytes` are the file's; `datasets` is where they lie and the digests that stand in it.
inline void resign(std::string& bytes, const ShardDatasets& datasets) {
  const auto replace_digest = [&](const DatasetPlace& place) {
    const std::size_t at = bytes.find(place.sha256);
    if (at == std::string::npos) return;
    const std::string digest = sha256_hex_of(bytes.data() + place.offset, place.bytes());
    bytes.replace(at, digest.size(), digest);
  };
  for (const CheckedDataset* dataset : datasets.checked()) {
    const std::span<const std::byte> content =
        std::as_bytes(std::span(bytes)).subspan(dataset->place.offset, dataset->place.bytes());
    std::vector<std::uint32_t> sums(checksum_blocks(content.size()));
    crc32c_of_blocks(content, kChecksumBlockBytes, sums.data());
    std::memcpy(&bytes[datasets.block_sums.offset + dataset->first_block * sizeof(sums[0])],
                sums.data(), sums.size() * sizeof(sums[0]));
    replace_digest(dataset->place);
  }
  replace_digest(datasets.block_sums);
}

}  // namespace tupelo
