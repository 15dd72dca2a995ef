// LAMB: Adam whose step is scaled to the length of each tensor (You et al., arXiv 1904.00962).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace tupelo {

// The points in which implementations of LAMB differ.
struct LambFlavour {
  const char* name;
  bool corrects_bias;
  bool adapts_undecayed;       // whether groups without weight decay have a trust ratio
  double largest_weight_norm;  // |w| counts for no more
};

// "corrected" or "fairseq". Throws std::out_of_range for another name.
const LambFlavour& lamb_flavour(const std::string& name);
std::vector<std::string> lamb_flavours();

// min(|w|, largest_weight_norm) / |u|; 1 where either is 0 and in groups that are not adapted.
double trust_ratio(const LambFlavour& flavour, double weight_decay, double weight_norm,
                   double update_norm);

// With g the gradient, t the group's own count of updates (see make_adamw) and lr, wd those of the
// group, for every tensor w:
//   m <- beta1 m + (1 - beta1) g;   v <- beta2 v + (1 - beta2) g^2
//   u = m' / (sqrt(v') + epsilon) + wd w;   w <- w - lr trust_ratio(|w|, |u|) u
// with m' = m / (1 - beta1^t) and v' = v / (1 - beta2^t) in "corrected", m and v in "fairseq". The
// Euclidean norms are accumulated in float64, over the whole tensor: a slice of a parameter does
// not get the update of the whole. State: that of a MomentOptimizer, m and v. options.flavour is
// one of lamb_flavours(). Throws std::invalid_argument when another option is out of range.
std::unique_ptr<Optimizer> make_lamb(const OptimizerOptions& options,
                                     std::vector<ParameterGroup> groups, SliceExchange* exchange);

}  // namespace tupelo
