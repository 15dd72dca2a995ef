// Results that are the same bits, run after run, on CUDA devices.
#pragma once

namespace tupelo {

// From here on LibTorch takes deterministic kernels alone, and throws where an operation has none;
// cuBLAS works in a workspace of fixed size, and NCCL sums in rings, not in switches (NVLS).
// Variables of the environment that say something about the last two stay as they are. Before the
// first use of a device and the first NCCL communicator, while no other thread looks at the
// environment. On processors all results are
// deterministic without it.
void require_determinism();

}  // namespace tupelo
