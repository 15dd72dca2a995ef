#include "launcher/profiler_range.h"

#ifdef TUPELO_CUDA
#include <nvtx3/nvToolsExt.h>
#endif

namespace tupelo {

#ifdef TUPELO_CUDA

ProfilerRange::ProfilerRange(const char* name) { nvtxRangePushA(name); }
ProfilerRange::~ProfilerRange() { nvtxRangePop(); }

#else

ProfilerRange::ProfilerRange(const char* /*name*/) {}
ProfilerRange::~ProfilerRange() = default;

#endif

}  // namespace tupelo
