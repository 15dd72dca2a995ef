// Positions as the path of a point in a learned flow (Liu, Yu, Dhillon, Hsieh, "Learning to Encode
// Position for Transformer with Continuous Dynamical Model", ICML 2020).
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/layers.h"
#include "model/position/option_reader.h"

namespace tupelo {

// Steps of width h of dp/dt = f(t, p).
enum class FlowSolver {
  kEuler,       // p + h f(t, p)
  kMidpoint,    // p + h f(t + h/2, p + h/2 f(t, p))
  kRungeKutta4  // the classical one
};

struct FlowSettings {
  FlowSolver solver = FlowSolver::kMidpoint;
  double delta = 0.01;             // time between neighbouring positions
  std::int64_t substeps = 5;       // steps of the solver within that
  std::int64_t refresh_every = 1;  // training calls between computed paths

  static std::vector<PositionOptionKind> options();
  explicit FlowSettings(const OptionReader& options);
};

// f(t, p) = W_2 [relu(W_1 [p ; t] + b_1) ; t] + b_2. Parameters: 0.{weight [H,H+1], bias [H]} and
// 2.{the same}.
class FloaterFlow : public torch::nn::Module {
 public:
  FloaterFlow(std::int64_t hidden_size, const FlowSettings& settings);

  // Weights normal by Xavier's rule, biases 0. Forgets the kept path.
  void initialize(const at::Generator& generator);

  // [T,...,H]: where points that are at start [...,H] at time 0 are at times 0, delta, 2 delta, ...
  // float32 or wider. Differentiable through the solver's steps, each after the other: backward
  // keeps what they computed.
  torch::Tensor path(const torch::Tensor& start, std::int64_t tokens) const;

  // With n = refresh_every, calls 1, n + 1, 2n + 1, ... in training return path() and keep it;
  // those between get it again, without gradients. Kept paths cover at least `usual` tokens; a
  // longer sequence computes and keeps one of its own. Evaluation always computes path(). No
  // checkpoint holds the kept path or the count of calls: a resumed run starts with call 1.
  torch::Tensor refreshed_path(const torch::Tensor& start, std::int64_t tokens, std::int64_t usual);

  // Names relative to this module.
  static std::vector<std::string> bias_names() { return {"0.bias", "2.bias"}; }
  // Floating-point operations of path() for `points` points.
  double path_flops(std::int64_t points, std::int64_t tokens) const;

 private:
  bool is_kept(const torch::Tensor& start, std::int64_t tokens) const;

  FlowSettings settings_;
  std::shared_ptr<Linear> first_;
  std::shared_ptr<Linear> second_;
  std::int64_t training_calls_ = 0;
  torch::Tensor kept_;
};

}  // namespace tupelo
