#include "data/tokenizer/double_array.h"

#include <algorithm>
#include <numeric>

namespace tupelo {
namespace {

// The keys order[begin, end) share their first `depth` bytes, which lead to `node`.
struct Branch {
  std::uint32_t node;
  std::size_t begin, end, depth;
};

std::vector<std::size_t> sorted_order(const std::vector<std::string>& keys) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  return order;
}

}  // namespace

DoubleArray::DoubleArray(const std::vector<std::string>& keys) {
  grow_for(0);
  const std::vector<std::size_t> order = sorted_order(keys);
  std::vector<Branch> open{{kRoot, 0, keys.size(), 0}};
  while (!open.empty()) {
    auto [node, begin, end, depth] = open.back();
    open.pop_back();
    if (begin != end && keys[order[begin]].size() == depth) {
      nodes_[node].value = static_cast<std::uint32_t>(order[begin++]);
    }
    std::string bytes;
    std::vector<std::size_t> starts;
    for (std::size_t i = begin; i < end; ++i) {
      if (bytes.empty() || bytes.back() != keys[order[i]][depth]) {
        bytes.push_back(keys[order[i]][depth]);
        starts.push_back(i);
      }
    }
    starts.push_back(end);
    if (bytes.empty()) continue;  // a leaf: whatever lies at its base has another parent
    const std::uint32_t base = place_children(bytes);
    nodes_[node].base = base;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::uint32_t child = base + static_cast<unsigned char>(bytes[i]);
      nodes_[child].parent = node;
      open.push_back({child, starts[i], starts[i + 1], depth + 1});
    }
  }
}

std::uint32_t DoubleArray::place_children(const std::string& bytes) {
  const std::uint32_t lowest = static_cast<unsigned char>(bytes.front());
  std::uint32_t tried = 0;
  // No place is below 1, so the root stays without a parent and no byte leads back to it.
  for (std::uint32_t place = std::max(first_free_, lowest + 1);; ++place) {
    const std::uint32_t base = place - lowest;
    grow_for(base);
    const bool fits = std::all_of(bytes.begin(), bytes.end(), [&](char byte) {
      return nodes_[base + static_cast<unsigned char>(byte)].parent == kNone;
    });
    if (!fits) {
      ++tried;
      continue;
    }
    // A stretch that was searched in vain for long is as good as full: later searches skip it,
    // which keeps building linear for the price of a few empty places.
    constexpr std::uint32_t kPatience = 512;
    if (tried > kPatience) first_free_ = place;
    return base;
  }
}

void DoubleArray::grow_for(std::uint32_t base) {
  const std::size_t needed = std::size_t{base} + 256;
  if (nodes_.size() < needed) nodes_.resize(std::max(needed, nodes_.size() + nodes_.size() / 2));
}

std::uint32_t DoubleArray::find_node(std::string_view text) const {
  std::uint32_t node = kRoot;
  for (const char byte : text) {
    node = step(node, byte);
    if (node == kNone) return kNone;
  }
  return node;
}

std::uint32_t DoubleArray::find(std::string_view key) const {
  const std::uint32_t node = find_node(key);
  return node == kNone ? kNone : value(node);
}

}  // namespace tupelo
