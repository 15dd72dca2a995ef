// Documents that are nearly the same: MinHash and locality-sensitive hashing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "data/cleaning/fingerprint.h"

namespace tupelo {

inline constexpr int kBands = 20;
inline constexpr int kRows = 13;  // of a band

// One fingerprint for each band; texts that share one are taken for alike. Texts whose sets of
// runs of 5 characters (white space left out) have Jaccard similarity s share one with probability
// about 1 - (1 - s^13)^20: 0.69 at 0.8, 0.995 at 0.9, 0.03 at 0.6. None for a text of less than 100
// such runs. Signatures are made by one permutation and rotation (Shrivastava and Li, "Densifying
// One Permutation Hashing via Rotation for Fast Near Neighbor Search", ICML 2014).
std::vector<Fingerprint> near_duplicate_bands(std::string_view text, std::uint64_t position);

}  // namespace tupelo
