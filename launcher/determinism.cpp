#include "launcher/determinism.h"

#include <ATen/Context.h>

#include <cstdlib>

namespace tupelo {

void require_determinism() {
  constexpr int kKeep = 0;
  // Of the two that cuBLAS documents as reproducible, the one with larger buffers.
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", kKeep);
  ::setenv("NCCL_ALGO", "Ring", kKeep);
  ::setenv("NCCL_NVLS_ENABLE", "0", kKeep);
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  // Memory that nobody reads before it is written need not be filled.
  context.setDeterministicFillUninitializedMemory(false);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
}

}  // namespace tupelo
