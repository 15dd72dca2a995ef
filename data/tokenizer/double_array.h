// A trie over byte strings in two look-ups per byte and 12 bytes per node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tupelo {

class DoubleArray {
 public:
  static constexpr std::uint32_t kRoot = 0;
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  // The value of keys[i] is i. Keys are distinct and not empty.
  explicit DoubleArray(const std::vector<std::string>& keys);

  // The node reached from `node` by `byte`, or kNone.
  std::uint32_t step(std::uint32_t node, char byte) const {
    const std::uint32_t next = nodes_[node].base + static_cast<unsigned char>(byte);
    return nodes_[next].parent == node ? next : kNone;
  }
  // The value of the key that ends in `node`, or kNone.
  std::uint32_t value(std::uint32_t node) const { return nodes_[node].value; }

  std::uint32_t find_node(std::string_view text) const;
  // The value of `key`, or kNone.
  std::uint32_t find(std::string_view key) const;

 private:
  struct Node {
    std::uint32_t base = 0;  // children live at base + byte
    std::uint32_t parent = kNone;
    std::uint32_t value = kNone;
  };

  std::uint32_t place_children(const std::string& bytes);
  void grow_for(std::uint32_t base);

  // Always 256 longer than the highest base, so that step() needs no bounds check.
  std::vector<Node> nodes_;
  std::uint32_t first_free_ = 1;
};

}  // namespace tupelo
