#include "tests/emulated_gpu/host_tensors.h"

#include "tests/emulated_gpu/device_memory.h"

namespace emulated_gpu {

Tensor on_host(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const auto options = tensor.options().device(at::kCPU);
  Tensor alias;
  if (tensor.numel() == 0) {
    alias = at::empty_strided(tensor.sizes(), tensor.strides(), options);
  } else {
    alias = at::from_blob(reachable(tensor.unsafeGetTensorImpl()->data()), tensor.sizes(),
                          tensor.strides(), options);
  }
  alias._set_conj(tensor.is_conj());
  alias._set_neg(tensor.is_neg());
  return alias;
}

Tensor stand_in(const Tensor& tensor, c10::DeviceType type) {
  if (!tensor.defined() || (type == at::kCPU && tensor.is_cpu() && tensor.dim() == 0))
    return tensor;
  const auto options = tensor.options().device(type);
  Tensor result = at::empty_strided(tensor.sizes(), tensor.strides(), options);
  if (type == at::kCPU) result.zero_();
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    result.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return result;
}

std::optional<c10::Device> device_in(const Stack& arguments) {
  std::optional<c10::Device> found;
  for (const IValue& value : arguments) {
    if (value.isDevice() && value.toDevice().is_cuda()) found = value.toDevice();
    visit_tensors(value, [&](const Tensor& tensor) {
      if (tensor.defined() && tensor.is_cuda()) found = tensor.device();
    });
  }
  return found;
}

}  // namespace emulated_gpu
