#include "distributed/reduction.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "distributed/half_floats.h"

namespace tupelo {
namespace {

// Accumulators of a block stay in the first-level cache while the inputs stream by.
constexpr std::size_t kBlock = 1024;

struct Sum {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
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

// How elements lie in memory, and what they are computed as.
template <typename T>
struct Plain {
  using Stored = T;
  using Accumulator = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};

struct BFloat16 {
  using Stored = std::uint16_t;
  using Accumulator = float;
  static float load(Stored bits) { return float_of_bfloat16(bits); }
  static Stored store(float value) { return bfloat16_of(value); }
};

struct Float16 {
  using Stored = std::uint16_t;
  using Accumulator = float;
  static float load(Stored bits) { return float_of_float16(bits); }
  static Stored store(float value) { return float16_of(value); }
};

template <typename Input, typename Output, typename Op>
void reduce(const std::vector<const void*>& inputs, void* output, std::size_t count, Op op) {
  std::array<typename Input::Accumulator, kBlock> accumulators;
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t size = std::min(kBlock, count - begin);
    const auto* first = static_cast<const typename Input::Stored*>(inputs.front()) + begin;
    for (std::size_t i = 0; i < size; ++i) accumulators[i] = Input::load(first[i]);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
      const auto* values = static_cast<const typename Input::Stored*>(inputs[rank]) + begin;
      for (std::size_t i = 0; i < size; ++i) {
        accumulators[i] = op(accumulators[i], Input::load(values[i]));
      }
    }
    auto* results = static_cast<typename Output::Stored*>(output) + begin;
    for (std::size_t i = 0; i < size; ++i) results[i] = Output::store(accumulators[i]);
  }
}

template <typename Half, typename Op>
void reduce_half(const std::vector<const void*>& inputs, void* output, std::size_t count,
                 Reduction types, Op op) {
  if (types.input == types.output) return reduce<Half, Half>(inputs, output, count, op);
  if (types.output == ElementType::kFloat32) {
    return reduce<Half, Plain<float>>(inputs, output, count, op);
  }
  return reduce<Plain<float>, Half>(inputs, output, count, op);
}

template <typename T, typename Op>
void reduce_plain(const std::vector<const void*>& inputs, void* output, std::size_t count, Op op) {
  reduce<Plain<T>, Plain<T>>(inputs, output, count, op);
}

template <typename Op>
void reduce(const std::vector<const void*>& inputs, void* output, std::size_t count,
            Reduction types, Op op) {
  // Sums of signed integers are computed unsigned: the same bits, and overflow is defined.
  constexpr bool wraps = std::is_same_v<Op, Sum>;
  using Int32 = std::conditional_t<wraps, std::uint32_t, std::int32_t>;
  using Int64 = std::conditional_t<wraps, std::uint64_t, std::int64_t>;
  switch (width_of(types.input) < width_of(types.output) ? types.input : types.output) {
    case ElementType::kFloat32:
      return reduce_plain<float>(inputs, output, count, op);
    case ElementType::kFloat64:
      return reduce_plain<double>(inputs, output, count, op);
    case ElementType::kBFloat16:
      return reduce_half<BFloat16>(inputs, output, count, types, op);
    case ElementType::kFloat16:
      return reduce_half<Float16>(inputs, output, count, types, op);
    case ElementType::kInt32:
      return reduce_plain<Int32>(inputs, output, count, op);
    case ElementType::kInt64:
      return reduce_plain<Int64>(inputs, output, count, op);
    case ElementType::kUInt8:
      return reduce_plain<std::uint8_t>(inputs, output, count, op);
  }
}

}  // namespace

void reduce_in_order(const std::vector<const void*>& inputs, void* output, std::size_t count,
                     Reduction reduction) {
  switch (reduction.op) {
    case ReduceOp::kSum:
      return reduce(inputs, output, count, reduction, Sum{});
    case ReduceOp::kMax:
      return reduce(inputs, output, count, reduction, Max{});
    case ReduceOp::kMin:
      return reduce(inputs, output, count, reduction, Min{});
  }
}

}  // namespace tupelo
