// Bin packing of many small sizes.
#pragma once

#include <cstdint>
#include <vector>

namespace tupelo {

// Bins of items: bin b holds items[first[b]] ... items[first[b + 1] - 1].
struct Bins {
  std::vector<std::uint64_t> first;  // one more than there are bins
  std::vector<std::uint64_t> items;
  std::uint64_t count() const { return first.empty() ? 0 : first.size() - 1; }
};

// Best fit decreasing: the largest item first, each into the fullest bin that still holds it. Never
// more than 11/9 of the fewest possible bins, and 4 (D. S. Johnson, "Near-optimal bin packing
// algorithms", 1973). Item i has sizes[i] <= capacity; items of size 0 are left out. A pure
// function: equal sizes are taken in the order of their items. Time n log capacity, memory 24 bytes
// per item.
Bins best_fit(const std::vector<std::uint32_t>& sizes, std::uint32_t capacity);

}  // namespace tupelo
