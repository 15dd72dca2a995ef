#include "data/keyed_permutation.h"

#include <bit>
#include <stdexcept>

#include "data/mixing.h"

namespace tupelo {
namespace {

// Four rounds suffice in theory; the rest costs little and helps the tiny domains.
constexpr std::uint64_t kRounds = 8;

}  // namespace

KeyedPermutation::KeyedPermutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch)
    : size_(size), key_(hash_numbers(seed, epoch, size)) {
  if (size == 0) throw std::invalid_argument("there is no permutation of nothing");
  // The smallest square domain that holds [0, size): below 4 * size, so walks stay short.
  half_bits_ = size < 3 ? 1 : (std::bit_width(size - 1) + 1) / 2;
}

std::uint64_t KeyedPermutation::operator()(std::uint64_t index) const {
  if (index >= size_) throw std::out_of_range("index outside the permutation");
  // The network permutes a larger domain: following it from inside always leads back inside.
  do {
    index = encrypt(index);
  } while (index >= size_);
  return index;
}

std::uint64_t KeyedPermutation::encrypt(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_, right = value & mask;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::uint64_t next = left ^ (hash_numbers(key_, round, right) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

std::uint64_t row_hash(std::uint64_t epoch, std::uint64_t row) { return hash_numbers(epoch, row); }

std::uint64_t complete_epoch_hash(std::uint64_t epoch, std::uint64_t rows) {
  std::uint64_t sum = 0;
  for (std::uint64_t row = 0; row < rows; ++row) sum += row_hash(epoch, row);
  return sum;
}

}  // namespace tupelo
