// The whole numbers that HDF5 files of ours hold.
#pragma once

#include <cstdint>

namespace tupelo {

enum class ElementType { kUint8, kUint16, kUint32, kUint64, kInt8, kInt32 };

constexpr std::uint64_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
    case ElementType::kInt8:
      return 1;
    case ElementType::kUint16:
      return 2;
    case ElementType::kUint32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kUint64:
      return 8;
  }
  return 0;
}

}  // namespace tupelo
