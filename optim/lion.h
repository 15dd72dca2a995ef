// Lion: steps of one length along the sign of the momentum (Chen et al., arXiv 2302.06675).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace tupelo {

// With g the gradient and lr, wd those of the group:
//   w <- w (1 - lr wd) - lr sign(beta1 m + (1 - beta1) g);   m <- beta2 m + (1 - beta2) g
// State: that of a MomentOptimizer, m alone. Epsilon has no meaning. options.flavour is one of
// lion_flavours(). Throws std::invalid_argument when another option is out of range.
std::unique_ptr<Optimizer> make_lion(const OptimizerOptions& options,
                                     std::vector<ParameterGroup> groups, SliceExchange* exchange);
std::vector<std::string> lion_flavours();

}  // namespace tupelo
