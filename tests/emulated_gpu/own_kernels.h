// Kernels of operators that LibTorch has for CUDA alone, or that draw from a generator which they
// do not name.
#pragma once

#include <ATen/core/stack.h>

#include <cstdint>
#include <functional>
#include <string>

namespace emulated_gpu {

// Takes the arguments, on the CPU, off the stack and puts the results there. `seed` is what a
// random operator draws with.
using OwnKernel = std::function<void(torch::jit::Stack& stack, std::uint64_t seed)>;

// Null for all others.
const OwnKernel* own_kernel(const std::string& name);

}  // namespace emulated_gpu
