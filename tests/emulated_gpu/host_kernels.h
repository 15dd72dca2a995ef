// Calls of the CPU's kernels.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/cuda/PhiloxCudaState.h>

#include <cstdint>
#include <optional>
#include <string>

#include "tests/emulated_gpu/host_tensors.h"

namespace emulated_gpu {

// "aten::add.Tensor"
std::string name_of(const c10::OperatorHandle& op);

// Which numbers a random operator draws: they begin where its device's generator stands, which for
// a recorded one is known when it runs.
class Draw {
 public:
  // Of an operator that is not random.
  Draw() = default;
  // Moves the generator on.
  static Draw of(const c10::OperatorHandle& op, const Stack& arguments, c10::Device device);

  bool is_random() const { return state_.has_value(); }
  std::uint64_t seed() const;

 private:
  std::optional<at::PhiloxCudaState> state_;
};

// Replaces `arguments`, tensors of the CPU, by the results. The host's generator is not touched.
void call_host_kernel(const c10::OperatorHandle& op, Stack& arguments, const Draw& draw);

}  // namespace emulated_gpu
