// What a process did with its emulated devices. When the process ends, the lines go to the file
// that EMULATED_GPU_REPORT names, followed by ".<rank>".
#pragma once

#include <string>

namespace emulated_gpu {

// Adds one to `what`: "host waits for a stream", "operator aten::addmm", ...
void count(const std::string& what);
// A context is made on a device by whatever is asked of it while it is the current one.
void note_context(int device);
bool has_context(int device);

}  // namespace emulated_gpu
