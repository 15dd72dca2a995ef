// What the elements of a tensor are, for code that knows no tensors. Internal to distributed/.
#pragma once

#include <cstddef>

namespace tupelo {

enum class ElementType { kFloat32, kFloat64, kBFloat16, kFloat16, kInt32, kInt64, kUInt8 };

constexpr std::size_t width_of(ElementType type) {
  switch (type) {
    case ElementType::kFloat64:
    case ElementType::kInt64:
      return 8;
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kBFloat16:
    case ElementType::kFloat16:
      return 2;
    case ElementType::kUInt8:
      return 1;
  }
  return 0;
}

// What part of a reduction is kept in until the rest of it arrives: the 16-bit floats in float32,
// so that they are rounded once.
constexpr ElementType partial_of(ElementType type) {
  const bool is_half = type == ElementType::kBFloat16 || type == ElementType::kFloat16;
  return is_half ? ElementType::kFloat32 : type;
}

}  // namespace tupelo
