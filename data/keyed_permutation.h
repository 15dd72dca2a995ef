// The order of an epoch, and the proof that an epoch was complete.
#pragma once

#include <cstdint>

namespace tupelo {

// Keyed permutation of [0, size) by a Feistel network with cycle walking: O(1) memory, random
// access. Equal (size, seed, epoch), equal permutation.
class KeyedPermutation {
 public:
  // Throws std::invalid_argument when size is 0.
  KeyedPermutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch);
  // `index` < size.
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t size_, key_;
  int half_bits_;
};

// Hash whose wrapping sum over the rows of an epoch proves that each was used exactly once.
std::uint64_t row_hash(std::uint64_t epoch, std::uint64_t row);
// Sum of row_hash over all rows of an epoch.
std::uint64_t complete_epoch_hash(std::uint64_t epoch, std::uint64_t rows);

}  // namespace tupelo
