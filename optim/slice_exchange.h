// How optimizers work together whose ranks have slices of the parameters only.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

namespace tupelo {

// What an update needs to know of a parameter that other ranks hold parts of. All calls are
// collective: every rank makes the same ones in the same order, with nothing (a sum of 0, a part of
// no elements) for parameters of which it has no part. One thread may call.
class SliceExchange {
 public:
  virtual ~SliceExchange() = default;

  // The sums over ranks, the same bits on each.
  virtual std::vector<double> sum(std::vector<double> values) = 0;
  // The tensor, shaped like `parameter`, of which this rank's part is `part` [n].
  virtual torch::Tensor whole(const std::string& parameter, const torch::Tensor& part) = 0;
  // This rank's part [n] of such a tensor; not collective.
  virtual torch::Tensor part(const std::string& parameter, const torch::Tensor& whole) = 0;
};

}  // namespace tupelo
