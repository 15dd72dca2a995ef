#include "data/cleaning/duplicate_finder.h"

#include <array>

#include "data/content_digest.h"

namespace tupelo {

Fingerprint fingerprint_of(std::string_view text, std::uint64_t position, ContentDigest& digest) {
  digest.update(text.data(), text.size());
  const ContentDigest::Bytes bytes = digest.finish();
  std::array<std::uint64_t, 2> halves = {};
  for (std::size_t i = 0; i < 16; ++i) halves[i / 8] = halves[i / 8] << 8 | bytes[i];
  return {halves[0], halves[1], position};
}

DuplicateFinder::DuplicateFinder(const std::filesystem::path& folder, std::size_t memory_bytes)
    : fingerprints_(std::in_place, folder / "fingerprints", memory_bytes / 4 * 3),
      duplicates_(folder / "duplicates", memory_bytes / 4) {}

void DuplicateFinder::finish() {
  fingerprints_->finish();
  ExternalSorter<Fingerprint>::Reader reader(*fingerprints_);
  Fingerprint first, next;
  for (bool any = false; reader.next(next); any = true) {
    if (any && next.high == first.high && next.low == first.low) {
      if (next.position != first.position) duplicates_.add(next.position);
    } else {
      first = next;
    }
  }
  fingerprints_.reset();
  duplicates_.finish();
}

std::optional<std::uint64_t> DuplicateFinder::Positions::next() {
  std::uint64_t position = 0;
  do {
    if (!reader_.next(position)) return std::nullopt;
  } while (last_ && position == *last_);
  last_ = position;
  return position;
}

}  // namespace tupelo
