// AdamW: Adam with decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "optim/moment_optimizer.h"
#include "optim/optimizer.h"

namespace tupelo {

// With g the gradient, t = step - frozen_until_step of the group (its own count of updates, as its
// moments begin with its first one) and lr, wd those of the group:
//   w <- w (1 - lr wd);   m <- beta1 m + (1 - beta1) g;   v <- beta2 v + (1 - beta2) g^2
//   flavour "torch":    w <- w - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
//   flavour "fairseq":  w <- w - lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon)
// State: that of a MomentOptimizer, m and v. options.flavour is one of adamw_flavours(). Throws
// std::invalid_argument when another option is out of range.
std::unique_ptr<Optimizer> make_adamw(const OptimizerOptions& options,
                                      std::vector<ParameterGroup> groups, SliceExchange* exchange);
std::vector<std::string> adamw_flavours();

// One update of flavour "torch" by the betas of `options`, for optimizers that leave some of their
// parameters to AdamW. Changes parameters and moments in place, without gradient tracking.
void adamw_update(const MomentBatch& batch, const MomentRates& rates,
                  const OptimizerOptions& options, double epsilon);

}  // namespace tupelo
