// Streams out of gzip and zstd files.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "data/input/byte_source.h"

namespace tupelo {

inline constexpr std::size_t kCompressedBlockBytes = std::size_t{128} << 10;
inline constexpr int kMostZstdWindowLog = 27;

// Each takes over the file's own bytes; `name` is what errors begin with.
std::unique_ptr<ByteSource> decompress_gzip(std::unique_ptr<ByteSource> file, std::string name);
std::unique_ptr<ByteSource> decompress_zstd(std::unique_ptr<ByteSource> file, std::string name);

}  // namespace tupelo
