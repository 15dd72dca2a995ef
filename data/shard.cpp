#include "data/shard.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "data/content_digest.h"
#include "data/errors.h"
#include "data/shard_layout.h"

namespace tupelo {
namespace {

// A shard has less than 64 KiB of it, gaps before pages included.
constexpr std::uint64_t kMaxStructureBytes = std::uint64_t{1} << 20;

// Hashes bytes [first, first + count) of a file.
void update(ContentDigest& digest, const RegularFile& file, std::uint64_t first,
            std::uint64_t count) {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(count, CheckedFile::kPieceBytes));
  while (count > 0) {
    const std::span<std::byte> piece =
        std::span(buffer).first(std::min<std::uint64_t>(count, buffer.size()));
    file.read(first, piece);
    digest.update(piece.data(), piece.size());
    first += piece.size();
    count -= piece.size();
  }
}

// The largest of the numbers, all of which become wider.
template <typename Integer>
std::uint32_t widen(std::span<const std::byte> from, std::uint32_t* to) {
  Integer largest = 0;
  const std::size_t count = from.size() / sizeof(Integer);
  for (std::size_t i = 0; i < count; ++i) {
    Integer value;
    std::memcpy(&value, from.data() + i * sizeof(Integer), sizeof(Integer));
    to[i] = value;
    largest = std::max(largest, value);
  }
  return largest;
}

RegularFile open_as_described(const std::filesystem::path& path, const ShardSummary& summary) {
  RegularFile file(path);
  if (file.bytes() != summary.bytes) {
    throw CorpusError(path.string() + ": has " + std::to_string(file.bytes()) +
                      " bytes, but index.json says " + std::to_string(summary.bytes));
  }
  if (structure_digest(file, summary.payload) != summary.structure_sha256) {
    throw CorpusError(path.string() +
                      ": is damaged outside its datasets: the SHA-256 of its structure is not the "
                      "one in index.json");
  }
  return file;
}

}  // namespace

std::string structure_digest(const RegularFile& file, const std::vector<ByteRange>& payload) {
  ContentDigest digest;
  std::uint64_t at = 0, outside = 0;
  for (const ByteRange& range : payload) {
    const bool ascends = range.first >= at && range.first <= file.bytes();
    if (!ascends || range.bytes > file.bytes() - range.first) return {};
    outside += range.first - at;
    if (outside > kMaxStructureBytes) return {};
    update(digest, file, at, range.first - at);
    at = range.first + range.bytes;
  }
  if (outside + (file.bytes() - at) > kMaxStructureBytes) return {};
  update(digest, file, at, file.bytes() - at);
  return digest.finish_hex();
}

Shard::Shard(RegularFile&& file, const ShardDatasets& datasets, std::uint32_t vocab_size)
    : file_(std::move(file), shard_layout::kBlockSums, datasets.block_sums),
      datasets_(datasets),
      vocab_size_(vocab_size) {
  check_offsets();
}

Shard::Shard(RegularFile&& file, const ShardIdentity& identity)
    : Shard(std::move(file), find_shard_datasets(file, identity), identity.vocab_size) {}

Shard::Shard(const std::filesystem::path& file, const ShardIdentity& identity)
    : Shard(RegularFile(file), identity) {}

Shard::Shard(const std::filesystem::path& file, const ShardIdentity& identity,
             const ShardSummary& summary)
    : Shard(open_as_described(file, summary), identity) {
  if (tokens() == summary.tokens && documents() == summary.documents) return;
  refuse("its counts of tokens and documents are not those in index.json");
}

void Shard::refuse(const std::string& what) const {
  throw CorpusError(file_.file().path().string() + ": " + what);
}

void Shard::check_range(std::uint64_t first, std::uint64_t count, std::uint64_t all) const {
  if (first <= all && count <= all - first) return;
  throw std::out_of_range(file_.file().path().string() + ": has no elements " +
                          std::to_string(first) + " + " + std::to_string(count) + " of " +
                          std::to_string(all));
}

void Shard::check_offsets() const {
  std::uint64_t last = 0;
  bool first = true, rises = true;
  const CheckedDataset& dataset = datasets_.doc_offsets;
  for_each_piece(file_, dataset, 0, dataset.place.bytes(), [&](std::span<const std::byte> piece) {
    for (std::size_t at = 0; at < piece.size(); at += sizeof(std::uint64_t)) {
      std::uint64_t offset;
      std::memcpy(&offset, &piece[at], sizeof(offset));
      rises = rises && (first ? offset == 0 : offset > last);
      first = false;
      last = offset;
    }
  });
  if (rises && last == tokens()) return;
  refuse("dataset '" + dataset.name + "' does not rise from 0 to the number of tokens");
}

template <typename Integer>
void Shard::read_elements(const CheckedDataset& dataset, std::uint64_t first, std::uint64_t count,
                          Integer* elements) const {
  check_range(first, count, dataset.place.count);
  for_each_piece(file_, dataset, first * sizeof(Integer), count * sizeof(Integer),
                 [&](std::span<const std::byte> piece) {
                   std::memcpy(elements, piece.data(), piece.size());
                   elements += piece.size() / sizeof(Integer);
                 });
}

void Shard::read_offsets(std::uint64_t first, std::uint64_t count, std::uint64_t* offsets) const {
  read_elements(datasets_.doc_offsets, first, count, offsets);
}

std::uint64_t Shard::offset(std::uint64_t document) const {
  std::uint64_t offset = 0;
  read_elements(datasets_.doc_offsets, document, 1, &offset);
  return offset;
}

std::uint64_t Shard::hash(std::uint64_t document) const {
  std::uint64_t hash = 0;
  read_elements(datasets_.doc_hash, document, 1, &hash);
  return hash;
}

std::uint16_t Shard::source(std::uint64_t document) const {
  std::uint16_t source = 0;
  read_elements(datasets_.doc_source, document, 1, &source);
  return source;
}

template <typename Integer>
void Shard::read_tokens(std::uint64_t first, std::uint64_t count, std::uint32_t* ids) const {
  const auto widen_piece = [&](std::span<const std::byte> piece) {
    const std::size_t tokens = piece.size() / sizeof(Integer);
    const std::uint32_t largest = widen<Integer>(piece, ids);
    if (largest >= vocab_size_) refuse_id(first, std::span(ids, tokens));
    ids += tokens;
    first += tokens;
  };
  for_each_piece(file_, datasets_.tokens, first * sizeof(Integer), count * sizeof(Integer),
                 widen_piece);
}

void Shard::refuse_id(std::uint64_t first, std::span<const std::uint32_t> ids) const {
  const auto outside =
      std::find_if(ids.begin(), ids.end(), [this](std::uint32_t id) { return id >= vocab_size_; });
  refuse("dataset '" + datasets_.tokens.name + "' holds id " + std::to_string(*outside) + " at " +
         std::to_string(first + static_cast<std::uint64_t>(outside - ids.begin())) +
         ", but the vocabulary has " + std::to_string(vocab_size_) + " tokens");
}

void Shard::read(std::uint64_t first, std::uint64_t count, std::uint32_t* ids) const {
  check_range(first, count, tokens());
  if (datasets_.tokens.place.type == ElementType::kUint16) {
    read_tokens<std::uint16_t>(first, count, ids);
  } else {
    read_tokens<std::uint32_t>(first, count, ids);
  }
}

void Shard::read_bits(const CheckedDataset& dataset, std::uint64_t first, std::uint64_t count,
                      std::uint8_t* flags) const {
  check_range(first, count, dataset.place.count > 0 ? tokens() : 0);
  if (count == 0) return;
  const std::uint64_t begin = first / 8, end = (first + count - 1) / 8 + 1;
  std::uint64_t bit = first % 8;  // of the next byte
  for_each_piece(file_, dataset, begin, end - begin, [&](std::span<const std::byte> piece) {
    for (const std::byte byte : piece) {
      for (; bit < 8 && count > 0; ++bit, --count) {
        *flags++ = static_cast<std::uint8_t>((static_cast<unsigned>(byte) >> bit) & 1);
      }
      bit = 0;
    }
  });
}

void Shard::read_word_starts(std::uint64_t first, std::uint64_t count, std::uint8_t* flags) const {
  read_bits(datasets_.word_start, first, count, flags);
}

void Shard::read_sentence_starts(std::uint64_t first, std::uint64_t count,
                                 std::uint8_t* flags) const {
  read_bits(datasets_.sent_start, first, count, flags);
}

void Shard::check_digest(const CheckedDataset& dataset) const {
  ContentDigest digest;
  for_each_piece(file_, dataset, 0, dataset.place.bytes(), [&](std::span<const std::byte> piece) {
    digest.update(piece.data(), piece.size());
  });
  if (digest.finish_hex() == dataset.place.sha256) return;
  refuse("dataset '" + dataset.name + "' is damaged: its SHA-256 is not the recorded one");
}

void Shard::check_ids() const {
  constexpr std::uint64_t kBlock = 4096;
  std::uint32_t ids[kBlock];
  for (std::uint64_t first = 0; first < tokens(); first += kBlock) {
    read(first, std::min(kBlock, tokens() - first), ids);
  }
}

void Shard::verify(const std::string& sha256) const {
  for (const CheckedDataset* dataset : datasets_.checked()) check_digest(*dataset);
  check_ids();
  ContentDigest digest;
  update(digest, file_.file(), 0, bytes());
  if (digest.finish_hex() != sha256) {
    refuse("is damaged outside its datasets: its SHA-256 is not the one in index.json");
  }
}

}  // namespace tupelo
