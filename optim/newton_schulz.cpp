#include "optim/newton_schulz.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include <algorithm>

namespace tupelo {
namespace {

constexpr int kSteps = 5;
constexpr double kLinear = 3.4445, kCubic = -4.7750, kQuintic = 2.0315;
constexpr double kLeastNorm = 1e-7;

}  // namespace

torch::Tensor orthogonalized(const torch::Tensor& matrix, double norm) {
  const bool tall = matrix.size(0) > matrix.size(1);
  // The smaller side is the one that is squared.
  torch::Tensor wide = (tall ? matrix.t() : matrix) / std::max(norm, kLeastNorm);
  for (int step = 0; step < kSteps; ++step) {
    const torch::Tensor square = at::mm(wide, wide.t());
    const torch::Tensor factor = at::addmm(square, square, square, kCubic, kQuintic);
    wide = at::addmm(wide, factor, wide, kLinear, 1.0);
  }
  return tall ? wide.t() : wide;
}

}  // namespace tupelo
