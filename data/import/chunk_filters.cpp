#include "data/import/chunk_filters.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace tupelo {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kChecksumBytes = 4;

struct Inflater {
  z_stream stream = {};
  Inflater() {
    if (::inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { ::inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
};

// At most `most` bytes.
Bytes inflate(std::span<const std::byte> stored, std::size_t most, const std::string& subject) {
  Bytes plain(most);
  Inflater inflater;
  inflater.stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(stored.data()));
  inflater.stream.avail_in = static_cast<uInt>(stored.size());
  inflater.stream.next_out = reinterpret_cast<Bytef*>(plain.data());
  inflater.stream.avail_out = static_cast<uInt>(plain.size());
  if (::inflate(&inflater.stream, Z_FINISH) != Z_STREAM_END) {
    throw CorpusError(subject +
                      " has compressed data that is damaged or expands to more than it "
                      "declares");
  }
  plain.resize(most - inflater.stream.avail_out);
  return plain;
}

// Byte k of all elements had been put together.
Bytes unshuffle(const Bytes& shuffled, std::size_t element_bytes) {
  const std::size_t count = shuffled.size() / element_bytes;
  Bytes plain = shuffled;  // what is left behind the last whole element stays where it is
  for (std::size_t k = 0; k < element_bytes; ++k) {
    for (std::size_t i = 0; i < count; ++i) {
      plain[i * element_bytes + k] = shuffled[k * count + i];
    }
  }
  return plain;
}

// Fletcher's sums of 16-bit words, the high byte first, modulo 65535 where 0 and 65535 are one.
std::pair<std::uint32_t, std::uint32_t> fletcher_sums(std::span<const std::byte> bytes) {
  std::uint64_t first = 0, second = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    const auto high = std::to_integer<std::uint64_t>(bytes[i]);
    const auto low = i + 1 < bytes.size() ? std::to_integer<std::uint64_t>(bytes[i + 1]) : 0;
    first = (first + (high << 8 | low)) % 65535;
    second = (second + first) % 65535;
  }
  return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(second)};
}

void drop_checksum(Bytes& bytes, const std::string& subject) {
  bool right = bytes.size() > kChecksumBytes;
  if (right) {
    const std::size_t size = bytes.size() - kChecksumBytes;
    std::uint32_t recorded = 0;
    std::memcpy(&recorded, bytes.data() + size, kChecksumBytes);
    bytes.resize(size);
    const auto [first, second] = fletcher_sums(bytes);
    right = (recorded & 0xFFFF) % 65535 == first && (recorded >> 16) % 65535 == second;
  }
  if (!right) throw CorpusError(subject + " is damaged: its checksum (fletcher32) is wrong");
}

}  // namespace

void undo_filters(const StoredArray& array, std::uint32_t skipped_filters,
                  std::span<const std::byte> stored, std::span<std::byte> chunk,
                  const std::string& subject) {
  // A checksum that was there before compression comes out of it, too.
  const std::size_t most = chunk.size() + kChecksumBytes * array.filters.size();
  Bytes bytes(stored.begin(), stored.end());
  for (std::size_t i = array.filters.size(); i-- > 0;) {
    if ((skipped_filters >> i & 1) != 0) continue;
    switch (array.filters[i]) {
      case ArrayFilter::kDeflate:
        bytes = inflate(bytes, most, subject);
        break;
      case ArrayFilter::kShuffle:
        bytes = unshuffle(bytes, array.type.bytes);
        break;
      case ArrayFilter::kFletcher32:
        drop_checksum(bytes, subject);
        break;
    }
  }
  if (bytes.size() != chunk.size()) {
    throw CorpusError(subject + " has a chunk of " + std::to_string(bytes.size()) +
                      " bytes where " + std::to_string(chunk.size()) + " belong");
  }
  std::copy(bytes.begin(), bytes.end(), chunk.begin());
}

}  // namespace tupelo
