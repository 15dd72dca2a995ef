#include "tests/emulated_gpu/nccl_reduction.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstdint>

namespace emulated_gpu {
namespace {

template <typename Number, typename Sum>
void reduce(const std::vector<const char*>& inputs, char* output, std::size_t count,
            ncclRedOp_t op) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = [&](std::size_t rank) {
      return static_cast<Sum>(reinterpret_cast<const Number*>(inputs[rank])[i]);
    };
    Sum result = at(0);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
      const Sum other = at(rank);
      result = op == ncclSum   ? static_cast<Sum>(result + other)
               : op == ncclMax ? std::max(result, other)
                               : std::min(result, other);
    }
    reinterpret_cast<Number*>(output)[i] = result;
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 4;
  }
}

void reduce(ncclDataType_t type, const std::vector<const char*>& inputs, char* output,
            std::size_t count, ncclRedOp_t op) {
  switch (type) {
    case ncclFloat32:
      return reduce<float, float>(inputs, output, count, op);
    case ncclFloat64:
      return reduce<double, double>(inputs, output, count, op);
    case ncclFloat16:
      return reduce<c10::Half, float>(inputs, output, count, op);
    case ncclBfloat16:
      return reduce<c10::BFloat16, float>(inputs, output, count, op);
    case ncclInt32:
      return reduce<std::int32_t, std::int32_t>(inputs, output, count, op);
    case ncclInt64:
      return reduce<std::int64_t, std::int64_t>(inputs, output, count, op);
    default:
      return reduce<std::uint8_t, std::uint8_t>(inputs, output, count, op);
  }
}

}  // namespace emulated_gpu
