#include "model/dropout.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <mutex>

namespace tupelo {
namespace {

struct Keep {
  std::uint32_t low_seed;
  std::uint32_t high_seed;
  std::uint32_t dropped_below;

  [[gnu::always_inline]] bool operator()(std::uint32_t index) const {
    // Two multiply-xorshift rounds; the second half of the seed enters between them, or else two
    // seeds would give shifted copies of one mask.
    std::uint32_t hash = index * 0x9e3779b9U + low_seed;
    hash = (hash ^ (hash >> 16)) * 0x7feb352dU;
    hash = ((hash ^ (hash >> 15)) + high_seed) * 0x846ca68bU;
    return (hash ^ (hash >> 16)) >= dropped_below;
  }
};

template <typename Scalar, typename Factor>
[[gnu::always_inline]] inline void scale_survivors(const Scalar* input, Scalar* result,
                                                   std::uint32_t first, std::int64_t count,
                                                   Keep keep, Factor scale) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Factor factor = keep(first + static_cast<std::uint32_t>(i)) ? scale : Factor(0);
    result[i] = static_cast<Scalar>(static_cast<Factor>(input[i]) * factor);
  }
}

// The loader picks the widest copy that the machine runs: integer products of four lanes are slow
// on the oldest x86-64, and the hash is most of the work.
#if defined(__x86_64__)
[[gnu::target_clones("avx512f", "avx2", "default")]]
#endif
void scale_survivors_of_floats(const float* input, float* result, std::uint32_t first,
                               std::int64_t count, Keep keep, float scale) {
  scale_survivors(input, result, first, count, keep, scale);
}

void scale_block(const float* input, float* result, std::uint32_t first, std::int64_t count,
                 Keep keep, double scale) {
  scale_survivors_of_floats(input, result, first, count, keep, static_cast<float>(scale));
}

template <typename Scalar>
void scale_block(const Scalar* input, Scalar* result, std::uint32_t first, std::int64_t count,
                 Keep keep, double scale) {
  scale_survivors(input, result, first, count, keep, scale);
}

// Element indices are hashed modulo 2^32; each block of 2^32 elements gets seeds of its own.
constexpr std::int64_t kBlock = std::int64_t{1} << 32;

class SeededDropout : public torch::autograd::Function<SeededDropout> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context,
                               const torch::Tensor& input, double probability) {
    const DropoutMask mask = DropoutMask::draw(probability);
    context->saved_data["seed"] = static_cast<std::int64_t>(mask.seed);
    context->saved_data["probability"] = probability;
    const torch::Tensor dense = input.contiguous();
    torch::Tensor result = at::empty_like(dense);
    mask.apply(dense, result);
    return result;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const DropoutMask mask{static_cast<std::uint64_t>(context->saved_data["seed"].toInt()),
                           context->saved_data["probability"].toDouble()};
    const torch::Tensor dense = gradients[0].contiguous();
    torch::Tensor result = at::empty_like(dense);
    mask.apply(dense, result);
    return {result, torch::Tensor()};
  }
};

}  // namespace

DropoutMask DropoutMask::draw(double probability) {
  TORCH_CHECK(probability >= 0.0 && probability < 1.0, "dropout probability ", probability);
  auto* generator = at::get_generator_or_default<at::CPUGeneratorImpl>(
      std::nullopt, at::detail::getDefaultCPUGenerator());
  const std::lock_guard<std::mutex> lock(generator->mutex_);
  return {generator->random64(), probability};
}

void DropoutMask::apply(const torch::Tensor& input, torch::Tensor& result) const {
  TORCH_CHECK(input.is_contiguous() && result.is_contiguous() && input.is_cpu());
  const auto dropped_below =
      static_cast<std::uint32_t>(std::min(std::round(probability * 4294967296.0), 4294967295.0));
  const double scale = 4294967296.0 / (4294967296.0 - dropped_below);
  const std::int64_t numel = input.numel();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, input.scalar_type(), "dropout", [&] {
    const auto* source = input.const_data_ptr<scalar_t>();
    auto* target = result.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, numel, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        const std::int64_t block = begin / kBlock;
        const std::int64_t stop = std::min(end, (block + 1) * kBlock);
        const Keep keep{static_cast<std::uint32_t>(seed),
                        static_cast<std::uint32_t>((seed >> 32) + block), dropped_below};
        scale_block(source + begin, target + begin, static_cast<std::uint32_t>(begin), stop - begin,
                    keep, scale);
        begin = stop;
      }
    });
  });
}

torch::Tensor dropout(const torch::Tensor& input, double probability) {
  if (probability == 0.0) {
    return input;
  }
  if (!input.is_cpu()) {
    return at::dropout(input, probability, /*train=*/true);
  }
  return SeededDropout::apply(input, probability);
}

}  // namespace tupelo
