#include "optim/loss_scaler.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace tupelo {

LossScaler::LossScaler(const LossScalerOptions& options)
    : options_(options), scale_(options.initial) {
  const bool ordered = options.least > 0 && options.least <= options.initial &&
                       options.initial <= options.most && std::isfinite(options.most);
  if (!ordered || options.window < 1) {
    throw std::invalid_argument(
        "loss scale: the least must be above 0, the initial one between it and the most, and the "
        "window at least 1 step");
  }
}

void LossScaler::finite() {
  if (++finite_steps_ < options_.window) return;
  finite_steps_ = 0;
  scale_ = std::min(2 * scale_, options_.most);
}

bool LossScaler::overflowed() {
  finite_steps_ = 0;
  const bool can_shrink = scale_ > options_.least;
  scale_ = std::max(scale_ / 2, options_.least);
  return can_shrink;
}

void LossScaler::restore(double scale, std::int64_t finite_steps) {
  scale_ = std::isnan(scale) ? options_.initial : std::clamp(scale, options_.least, options_.most);
  finite_steps_ = std::clamp<std::int64_t>(finite_steps, 0, options_.window - 1);
}

}  // namespace tupelo
