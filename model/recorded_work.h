// Work on a device that is recorded once and then runs again in one launch: CUDA graphs, seen from
// the model, which knows no device.
#pragma once

#include <functional>
#include <memory>

namespace tupelo {

// The same kernels on the same addresses.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  // On the current stream. Random numbers are drawn anew from the device's default generator, as
  // many as the work itself would.
  virtual void replay() = 0;
};

// Calls `work` and records what it asks of the device, which need not be done. `work` may be kept
// and called again by replay(). Recordings may share memory, and so must be replayed in the
// order in which they were made. One thread calls.
using WorkRecorder = std::function<std::unique_ptr<RecordedWork>(std::function<void()> work)>;

}  // namespace tupelo
