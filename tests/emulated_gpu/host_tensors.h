// Arguments of operators, with tensors of emulated devices replaced by tensors of the CPU.
#pragma once

#include <ATen/core/stack.h>
#include <torch/types.h>

#include <optional>

namespace emulated_gpu {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

// An argument with each tensor in it replaced.
template <typename Replace>
IValue replaced(const IValue& value, const Replace& replace) {
  if (value.isTensor()) return replace(value.toTensor());
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorVector()) list.push_back(replace(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const auto& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional<Tensor>(replace(*tensor)) : std::nullopt);
    }
    return list;
  }
  return value;
}

template <typename Visit>
void visit_tensors(const IValue& value, const Visit& visit) {
  replaced(value, [&](const Tensor& tensor) {
    visit(tensor);
    return tensor;
  });
}

// The same bytes as a tensor of the CPU that does not keep them alive.
Tensor on_host(const Tensor& tensor);
// Of the same shape: without bytes (at::kMeta), or of zeros (at::kCPU).
Tensor stand_in(const Tensor& tensor, c10::DeviceType type);
// Where an operator with such arguments works.
std::optional<c10::Device> device_in(const Stack& arguments);

}  // namespace emulated_gpu
