// Dynamic loss scaling for gradients in float16 (Micikevicius et al., "Mixed Precision Training",
// ICLR 2018).
#pragma once

#include <cstdint>

namespace tupelo {

struct LossScalerOptions {
  double initial = 65536;      // a power of two, as all scales are: they change no digit
  double least = 1;            // > 0; steps that overflow at this scale are the run's own fault
  double most = 16777216;      // 2^24
  std::int64_t window = 2000;  // finite steps in a row after which the scale doubles
};

// What the loss is multiplied by before backward, and gradients divided by after it. Its decisions
// follow from those of the steps alone, so ranks that agree on each step agree on the scale.
class LossScaler {
 public:
  // Throws std::invalid_argument unless 0 < least <= initial <= most and window >= 1.
  explicit LossScaler(const LossScalerOptions& options);

  double scale() const { return scale_; }
  std::int64_t finite_steps() const { return finite_steps_; }  // in a row, at this scale

  // After a step whose gradients were finite on all ranks, or not on one of them.
  void finite();
  // Returns whether a smaller scale is left to try.
  bool overflowed();

  // Takes up what a checkpoint holds; values out of range are brought into it.
  void restore(double scale, std::int64_t finite_steps);

 private:
  LossScalerOptions options_;
  double scale_;
  std::int64_t finite_steps_ = 0;
};

}  // namespace tupelo
