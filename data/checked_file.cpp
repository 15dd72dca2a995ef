#include "data/checked_file.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "data/content_digest.h"
#include "data/crc32c.h"
#include "data/errors.h"

namespace tupelo {
namespace {

constexpr std::uint64_t kSumBytes = sizeof(std::uint32_t);
constexpr std::uint64_t kSumsOfABlock = kChecksumBlockBytes / kSumBytes;
constexpr std::size_t kBlocksOfAPiece = CheckedFile::kPieceBytes / kChecksumBlockBytes;
static_assert(kBlocksOfAPiece <= kSumsOfABlock, "the checksums of a piece lie in two blocks");

}  // namespace

std::uint64_t checksum_blocks(std::uint64_t bytes) {
  return bytes / kChecksumBlockBytes + (bytes % kChecksumBlockBytes > 0 ? 1 : 0);
}

CheckedFile::CheckedFile(RegularFile file, const std::string& sums_name, const DatasetPlace& sums)
    : file_(std::move(file)), sums_(sums) {
  remember_sums(sums_name);
}

void CheckedFile::refuse(const std::string& what) const {
  throw CorpusError(file_.path().string() + ": " + what);
}

void CheckedFile::remember_sums(const std::string& name) {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(sums_.bytes(), kPieceBytes));
  ContentDigest digest;
  sums_of_sums_.resize(checksum_blocks(sums_.bytes()));
  for (std::uint64_t at = 0; at < sums_.bytes(); at += buffer.size()) {
    const std::span<std::byte> piece(buffer.data(),
                                     std::min<std::uint64_t>(buffer.size(), sums_.bytes() - at));
    file_.read(sums_.offset + at, piece);
    digest.update(piece.data(), piece.size());
    crc32c_of_blocks(piece, kChecksumBlockBytes, &sums_of_sums_[at / kChecksumBlockBytes]);
  }
  if (digest.finish_hex() == sums_.sha256) return;
  refuse("dataset '" + name + "' is damaged: its SHA-256 is not the recorded one");
}

// At most kBlocksOfAPiece of them.
void CheckedFile::read_sums(std::uint64_t first, std::span<std::uint32_t> sums) const {
  std::array<std::uint32_t, 2 * kSumsOfABlock> stored;
  const std::uint64_t block = first / kSumsOfABlock;
  const std::uint64_t last_block = (first + sums.size() - 1) / kSumsOfABlock;
  const std::uint64_t begin = block * kSumsOfABlock;
  const std::uint64_t end = std::min((last_block + 1) * kSumsOfABlock, sums_.count);
  const auto bytes = std::as_writable_bytes(std::span(stored).first(end - begin));
  file_.read(sums_.offset + begin * kSumBytes, bytes);
  std::array<std::uint32_t, 2> found = {};
  crc32c_of_blocks(bytes, kChecksumBlockBytes, found.data());
  for (std::uint64_t b = block; b <= last_block; ++b) {
    if (found[b - block] != sums_of_sums_[b]) refuse("was changed after it had been opened");
  }
  std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(first - begin), sums.size(),
              sums.begin());
}

std::span<const std::byte> CheckedFile::read_piece(const CheckedDataset& dataset,
                                                   std::uint64_t first, std::uint64_t count,
                                                   std::span<std::byte, kPieceBytes> buffer) const {
  const std::uint64_t all = dataset.place.bytes();
  if (count == 0 || first >= all || count > all - first) {
    throw std::out_of_range("dataset '" + dataset.name + "' has " + std::to_string(all) + " bytes");
  }
  const std::uint64_t block = first / kChecksumBlockBytes;
  const std::uint64_t begin = block * kChecksumBlockBytes;
  const std::uint64_t wanted = checksum_blocks(first + count) * kChecksumBlockBytes - begin;
  const std::span<std::byte> piece =
      buffer.first(std::min({wanted, std::uint64_t{kPieceBytes}, all - begin}));
  file_.read(dataset.place.offset + begin, piece);

  const std::size_t blocks = checksum_blocks(piece.size());
  std::array<std::uint32_t, kBlocksOfAPiece> expected, found;
  read_sums(dataset.first_block + block, std::span(expected).first(blocks));
  crc32c_of_blocks(piece, kChecksumBlockBytes, found.data());
  for (std::size_t b = 0; b < blocks; ++b) {
    if (found[b] == expected[b]) continue;
    const std::uint64_t at = begin + b * kChecksumBlockBytes;
    refuse("dataset '" + dataset.name + "' is damaged between its bytes " + std::to_string(at) +
           " and " + std::to_string(std::min(at + kChecksumBlockBytes, all)) +
           ": their checksum is not the recorded one");
  }
  const std::uint64_t skipped = first - begin;
  return piece.subspan(skipped, std::min(count, piece.size() - skipped));
}

}  // namespace tupelo
