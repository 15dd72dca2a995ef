#include "model/allocation_meter.h"

#include <c10/core/Allocator.h>

#include <algorithm>
#include <mutex>

namespace tupelo {

class AllocationMeter::Ledger : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*pointer*/, std::int64_t bytes, std::size_t /*allocated*/,
                         std::size_t /*reserved*/, c10::Device /*device*/) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    live_ += bytes;
    peak_ = std::max(peak_, live_);
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::int64_t live() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return live_;
  }
  std::int64_t peak() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return peak_;
  }
  void mark() {
    const std::lock_guard<std::mutex> lock(mutex_);
    peak_ = live_;
  }

 private:
  mutable std::mutex mutex_;
  std::int64_t live_ = 0, peak_ = 0;
};

AllocationMeter::AllocationMeter()
    : ledger_(std::make_shared<Ledger>()), guard_(c10::DebugInfoKind::PROFILER_STATE, ledger_) {}

AllocationMeter::~AllocationMeter() = default;

std::int64_t AllocationMeter::live_bytes() const { return ledger_->live(); }

std::int64_t AllocationMeter::peak_bytes() const { return ledger_->peak(); }

void AllocationMeter::mark() { ledger_->mark(); }

}  // namespace tupelo
