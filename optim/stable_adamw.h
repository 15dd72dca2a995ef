// StableAdamW: AdamW whose step is shortened where the second moment lags behind the gradient
// (Wortsman et al., arXiv 2304.13013; the clipping is that of AdaFactor, arXiv 1804.04235).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace tupelo {

// With g the gradient, t the group's own count of updates (see make_adamw), lr, wd those of the
// group and b(beta) = (beta - beta^t) / (1 - beta^t), for every tensor w:
//   m <- b(beta1) m + (1 - b(beta1)) g;   v <- b(beta2) v + (1 - b(beta2)) g^2
//   rms = sqrt(mean(g^2 / max(v, epsilon^2)));   r = lr / max(1, rms)
//   w <- w (1 - r wd) - r m / (sqrt(v) + epsilon)
// m and v are those of AdamW after bias correction. The mean is accumulated in float64, over the
// whole tensor: a slice of a parameter does not get the update of the whole. State: that of a
// MomentOptimizer, m and v. options.flavour is one of stable_adamw_flavours(). Throws
// std::invalid_argument when another option is out of range.
std::unique_ptr<Optimizer> make_stable_adamw(const OptimizerOptions& options,
                                             std::vector<ParameterGroup> groups,
                                             SliceExchange* exchange);
std::vector<std::string> stable_adamw_flavours();

}  // namespace tupelo
