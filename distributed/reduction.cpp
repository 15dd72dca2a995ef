#include "distributed/reduction.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

namespace tupelo {
namespace {

// Accumulators of a block stay in the first-level cache while the inputs stream by.
constexpr std::size_t kBlock = 1024;

struct Sum {
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
};

struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};

template <typename Element, typename Accumulator, typename Op>
void reduce(const std::vector<const void*>& inputs, void* output, std::size_t count, Op op) {
  std::array<Accumulator, kBlock> accumulators;
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t size = std::min(kBlock, count - begin);
    const auto* first = static_cast<const Element*>(inputs.front()) + begin;
    for (std::size_t i = 0; i < size; ++i) accumulators[i] = static_cast<Accumulator>(first[i]);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
      const auto* values = static_cast<const Element*>(inputs[rank]) + begin;
      for (std::size_t i = 0; i < size; ++i) {
        accumulators[i] = op(accumulators[i], static_cast<Accumulator>(values[i]));
      }
    }
    auto* results = static_cast<Element*>(output) + begin;
    for (std::size_t i = 0; i < size; ++i) results[i] = static_cast<Element>(accumulators[i]);
  }
}

template <typename Op>
void reduce(const std::vector<const void*>& inputs, void* output, std::size_t count,
            torch::ScalarType dtype, Op op) {
  // Sums of signed integers are computed unsigned: the same bits, and overflow is defined.
  constexpr bool wraps = std::is_same_v<Op, Sum>;
  using Int32 = std::conditional_t<wraps, std::uint32_t, std::int32_t>;
  using Int64 = std::conditional_t<wraps, std::uint64_t, std::int64_t>;
  switch (dtype) {
    case torch::kFloat32:
      return reduce<float, float>(inputs, output, count, op);
    case torch::kFloat64:
      return reduce<double, double>(inputs, output, count, op);
    case torch::kBFloat16:
      return reduce<c10::BFloat16, float>(inputs, output, count, op);
    case torch::kFloat16:
      return reduce<c10::Half, float>(inputs, output, count, op);
    case torch::kInt32:
      return reduce<Int32, Int32>(inputs, output, count, op);
    case torch::kInt64:
      return reduce<Int64, Int64>(inputs, output, count, op);
    case torch::kUInt8:
      return reduce<std::uint8_t, std::uint32_t>(inputs, output, count, op);
    default:
      TORCH_CHECK(false, "no reduction for ", dtype);
  }
}

}  // namespace

void reduce_in_order(const std::vector<const void*>& inputs, void* output, std::size_t count,
                     torch::ScalarType dtype, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return reduce(inputs, output, count, dtype, Sum{});
    case ReduceOp::kMax:
      return reduce(inputs, output, count, dtype, Max{});
    case ReduceOp::kMin:
      return reduce(inputs, output, count, dtype, Min{});
  }
}

}  // namespace tupelo
