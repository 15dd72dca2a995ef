#include "data/best_fit.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

namespace tupelo {
namespace {

// Items of size > 0, the largest first, equal ones in their order.
std::vector<std::uint64_t> by_falling_size(const std::vector<std::uint32_t>& sizes,
                                           std::uint32_t capacity) {
  std::vector<std::uint64_t> place(std::size_t{capacity} + 2);  // where items of a size begin
  for (const std::uint32_t size : sizes) {
    if (size > capacity) throw std::invalid_argument("an item is larger than a bin");
    ++place[capacity - size + 1];
  }
  std::partial_sum(place.begin(), place.end(), place.begin());
  std::vector<std::uint64_t> order(place[capacity]);  // without those of size 0, which come last
  for (std::uint64_t item = 0; item < sizes.size(); ++item) {
    if (sizes[item] > 0) order[place[capacity - sizes[item]]++] = item;
  }
  return order;
}

// Open bins by the space that is left in them.
class OpenBins {
 public:
  explicit OpenBins(std::uint32_t capacity)
      : capacity_(capacity), bins_(std::size_t{capacity} + 1) {}

  // The bin that an item of this size goes to.
  std::uint64_t place(std::uint32_t size) {
    const auto fitting = spaces_.lower_bound(size);
    if (fitting == spaces_.end()) {
      open(count_, capacity_ - size);
      return count_++;
    }
    const std::uint32_t space = *fitting;
    const std::uint64_t bin = bins_[space].back();
    bins_[space].pop_back();
    if (bins_[space].empty()) spaces_.erase(fitting);
    open(bin, space - size);
    return bin;
  }

  std::uint64_t count() const { return count_; }

 private:
  void open(std::uint64_t bin, std::uint32_t space) {
    if (space == 0) return;
    if (bins_[space].empty()) spaces_.insert(space);
    bins_[space].push_back(bin);
  }

  std::uint32_t capacity_;
  std::vector<std::vector<std::uint64_t>> bins_;
  std::set<std::uint32_t> spaces_;  // those with a bin
  std::uint64_t count_ = 0;
};

}  // namespace

Bins best_fit(const std::vector<std::uint32_t>& sizes, std::uint32_t capacity) {
  const std::vector<std::uint64_t> order = by_falling_size(sizes, capacity);
  std::vector<std::uint64_t> bin_of(order.size());
  OpenBins open(capacity);
  for (std::size_t i = 0; i < order.size(); ++i) bin_of[i] = open.place(sizes[order[i]]);

  Bins bins;
  bins.first.resize(open.count() + 1);
  for (const std::uint64_t bin : bin_of) ++bins.first[bin + 1];
  std::partial_sum(bins.first.begin(), bins.first.end(), bins.first.begin());
  bins.items.resize(order.size());
  std::vector<std::uint64_t> next(bins.first.begin(), bins.first.end() - 1);
  for (std::size_t i = 0; i < order.size(); ++i) bins.items[next[bin_of[i]]++] = order[i];
  return bins;
}

}  // namespace tupelo
