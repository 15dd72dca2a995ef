#include "tests/emulated_gpu/host_kernels.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>

#include <mutex>

#include "tests/emulated_gpu/device_memory.h"
#include "tests/emulated_gpu/own_kernels.h"

namespace emulated_gpu {
namespace {

bool takes_generator(const c10::Argument& argument) {
  const auto& type = argument.type();
  const auto optional = type->cast<c10::OptionalType>();
  return (optional ? optional->getElementType() : type)->kind() == c10::TypeKind::GeneratorType;
}

}  // namespace

std::string name_of(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

Draw Draw::of(const c10::OperatorHandle& op, const Stack& arguments, c10::Device device) {
  Draw draw;
  if (!op.hasTag(at::Tag::nondeterministic_seeded)) return draw;
  std::optional<at::Generator> given;
  for (const IValue& value : arguments) {
    if (value.isGenerator()) given = value.toGenerator();
  }
  auto* generator = at::get_generator_or_default<at::CUDAGeneratorImpl>(
      given, at::cuda::detail::getDefaultCUDAGenerator(device.index()));
  const std::lock_guard lock(generator->mutex_);
  draw.state_ = generator->philox_cuda_state(4);
  return draw;
}

std::uint64_t Draw::seed() const {
  const auto read = [](const std::int64_t* address) {
    return static_cast<std::uint64_t>(*static_cast<const std::int64_t*>(reachable(address)));
  };
  const std::uint64_t seed = state_->captured_ ? read(state_->seed_.ptr) : state_->seed_.val;
  const std::uint64_t offset = state_->captured_
                                   ? read(state_->offset_.ptr) + state_->offset_intragraph_
                                   : state_->offset_.val;
  return seed + offset * 0x9e3779b97f4a7c15ULL;
}

void call_host_kernel(const c10::OperatorHandle& op, Stack& arguments, const Draw& draw) {
  const c10::impl::ExcludeDispatchKeyGuard below_autograd(
      c10::autograd_dispatch_keyset_with_ADInplaceOrView);
  const std::uint64_t seed = draw.is_random() ? draw.seed() : 0;
  if (const OwnKernel* own = own_kernel(name_of(op))) {
    (*own)(arguments, seed);
    return;
  }
  // Of its own, since the process's generator is the host's.
  bool has_generator = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!takes_generator(op.schema().arguments()[i])) continue;
    arguments[i] = at::make_generator<at::CPUGeneratorImpl>(seed);
    has_generator = true;
  }
  TORCH_CHECK(has_generator || !draw.is_random(), "emulated GPU: what ", name_of(op),
              " draws is not known");
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &arguments);
}

}  // namespace emulated_gpu
