// What tells texts apart without keeping them.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

namespace tupelo {

class ContentDigest;

struct Fingerprint {
  std::uint64_t high = 0, low = 0;
  std::uint64_t position = 0;  // document << 24 | line
  auto operator<=>(const Fingerprint&) const = default;
};

inline constexpr int kLineBits = 24;  // a document has at most 2^24 bytes, so fewer lines
inline constexpr std::uint64_t kWholeDocument = (std::uint64_t{1} << kLineBits) - 1;
inline constexpr std::uint64_t kNearDocument = kWholeDocument - 1;

inline std::uint64_t position_of(std::uint64_t document, std::uint64_t line) {
  return document << kLineBits | line;
}

// The first half of the text's SHA-256.
Fingerprint fingerprint_of(std::string_view text, std::uint64_t position, ContentDigest& digest);

}  // namespace tupelo
