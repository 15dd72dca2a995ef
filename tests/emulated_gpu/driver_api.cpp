// What LibTorch asks of the CUDA driver itself. The emulator's library has the driver's name, so
// that this is what is found under it.
#include <cuda.h>

#include "tests/emulated_gpu/device_memory.h"
#include "tests/emulated_gpu/report.h"

extern "C" CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  if (device < 0 || device >= emulated_gpu::device_count()) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = emulated_gpu::has_context(device) ? 1 : 0;
  return CUDA_SUCCESS;
}
