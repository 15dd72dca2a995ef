// Files compressed by zstd.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/regular_file.h"

namespace tupelo {

struct ZstdFile {
  std::uint64_t bytes = 0;
  std::string sha256;          // of the file
  std::string content_sha256;  // of what it holds
};

// Writes a new file, one frame with a checksum, as `zstd -LEVEL` does, and syncs it; the same bytes
// for the same content and release of libzstd. `level` is 1 to 19. Throws what reading `content`
// throws, std::system_error.
ZstdFile write_zstd_file(const std::filesystem::path& file, const RegularFile& content, int level);

}  // namespace tupelo
