// Muon: momentum whose singular values are made equal, for the matrices of hidden layers (Jordan et
// al. 2024, kellerjordan.github.io/posts/muon; Liu et al., arXiv 2502.16982).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace tupelo {

// What the update of a matrix [rows, columns] is multiplied by, beside the learning rate:
//   "keller":    sqrt(max(1, rows / columns))
//   "moonshot":  0.2 sqrt(max(rows, columns)), which makes steps as long as AdamW's
double muon_scale(const std::string& flavour, std::int64_t rows, std::int64_t columns);

// With g the gradient, mu = options.momentum and lr, wd those of the group, for every matrix w of
// groups with hidden_matrices:
//   m <- mu m + (1 - mu) g;   u = mu m + (1 - mu) g;   w <- w (1 - lr wd) - lr scale
//   orthogonalized(u)
// orthogonalized() is that of optim/newton_schulz.h, over the whole matrix: a slice of it does not
// get the update of the whole. Other groups get the update of AdamW, flavour "torch". State: that
// of a MomentOptimizer; matrices have no second moment. options.flavour is one of muon_flavours().
// Throws std::invalid_argument when another option is out of range or a parameter of a group with
// hidden_matrices is no matrix.
std::unique_ptr<Optimizer> make_muon(const OptimizerOptions& options,
                                     std::vector<ParameterGroup> groups, SliceExchange* exchange);
std::vector<std::string> muon_flavours();

}  // namespace tupelo
