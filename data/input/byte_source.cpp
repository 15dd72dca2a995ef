#include "data/input/byte_source.h"

#include <utility>

#include "data/errors.h"
#include "data/input/decompression.h"
#include "data/input/plain_file.h"

namespace tupelo {
namespace {

bool begins_as_gzip(std::string_view bytes) { return bytes.starts_with("\x1F\x8B\x08"); }

// A frame, or a skippable frame before it.
bool begins_as_zstd(std::string_view bytes) {
  if (bytes.starts_with("\x28\xB5\x2F\xFD")) return true;
  return bytes.size() >= 4 && (bytes[0] & 0xF0) == 0x50 && bytes.substr(1, 3) == "\x2A\x4D\x18";
}

void check_promise(const std::filesystem::path& file) {
  const std::string extension = file.extension().string();
  if (extension == ".gz" || extension == ".zst" || extension == ".zstd") {
    throw CorpusError(file.string() + ": is named " + extension + ", but does not begin as " +
                      (extension == ".gz" ? "gzip" : "zstd") + " does");
  }
}

}  // namespace

std::unique_ptr<ByteSource> open_byte_source(const std::filesystem::path& file,
                                             const FileState* expected) {
  auto plain = std::make_unique<PlainFile>(file, expected);
  const std::string_view first = plain->first_bytes();
  if (begins_as_gzip(first)) return decompress_gzip(std::move(plain), file.string());
  if (begins_as_zstd(first)) return decompress_zstd(std::move(plain), file.string());
  check_promise(file);
  return plain;
}

std::string read_all(ByteSource& source, std::size_t most, const std::string& name) {
  constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
  std::string bytes;
  for (;;) {
    const std::size_t before = bytes.size();
    bytes.resize(before + kBlockBytes);
    const std::size_t got = source.read(bytes.data() + before, kBlockBytes);
    bytes.resize(before + got);
    if (got == 0) return bytes;
    if (bytes.size() > most) {
      throw CorpusError(name + ": is longer than " + std::to_string(most) +
                        " bytes, the most of a file that is read as a whole");
    }
  }
}

}  // namespace tupelo
