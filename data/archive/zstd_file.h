// Files compressed by zstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace tupelo {

struct ZstdFile {
  std::uint64_t bytes = 0;
  std::string sha256;  // of the file
};

// Writes a new file, one frame with a checksum, as `zstd -LEVEL` does, and syncs it; the same bytes
// for the same `content` and release of libzstd. `level` is 1 to 19. Throws std::system_error.
ZstdFile write_zstd_file(const std::filesystem::path& file, std::span<const std::byte> content,
                         int level);

}  // namespace tupelo
