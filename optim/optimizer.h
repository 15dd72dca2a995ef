// Optimizers: one update of every parameter from its gradient.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tupelo {

class SliceExchange;

struct NamedParameter {
  std::string name;
  torch::Tensor tensor;
  // When `tensor` is a slice [n] of a parameter that other ranks have the rest of: the sizes of all
  // of it. Else nothing.
  std::optional<std::vector<std::int64_t>> slice_of = {};

  at::IntArrayRef whole_sizes() const { return slice_of ? *slice_of : tensor.sizes(); }
};

// Parameters that share their update rule's settings.
struct ParameterGroup {
  std::string name;
  std::vector<NamedParameter> parameters;
  double learning_rate_multiplier = 1.0;
  double weight_decay = 0.0;
  // The group is left untouched (no decay, no moments) in steps 1 .. frozen_until_step; its updates
  // count from there.
  std::int64_t frozen_until_step = 0;
  // Matrices of layers: what an optimizer of matrices treats as such. Others do not care.
  bool hidden_matrices = false;
};

// Stands for the first of optimizer_flavours(name).
inline constexpr const char* kDefaultFlavour = "default";

struct OptimizerOptions {
  std::string name = "adamw";
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-6;
  double momentum = 0.95;  // of hidden matrices, in optimizers of matrices
  // Which implementation's convention an optimizer follows: one of optimizer_flavours(name), or
  // kDefaultFlavour.
  std::string flavour = kDefaultFlavour;
};

// Applies updates in place. Not thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One update with base learning rate `learning_rate`; `step` counts from 1 over the whole run.
  // Parameters without a defined gradient are skipped. Gradients may have any layout.
  virtual void step(double learning_rate, std::int64_t step) = 0;

  // Everything a resumed run needs, as tensors with stable names ("exp_avg.<parameter>", ...). The
  // tensors alias the optimizer's own storage.
  virtual std::vector<std::pair<std::string, torch::Tensor>> state() = 0;
  // Copies values into the state. Throws std::invalid_argument on a missing or extra name and on a
  // shape or dtype that differs, and then changes nothing.
  virtual void load_state(const std::vector<std::pair<std::string, torch::Tensor>>& state) = 0;

  virtual const std::vector<ParameterGroup>& groups() const = 0;
};

// Parameters are contiguous tensors with names of their own. `exchange`, which outlives the
// optimizer, is there when they are slices; step() is then collective, and every parameter has a
// gradient on every rank. Throws std::invalid_argument that lists the known names, or the valid
// range of an option.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          std::vector<ParameterGroup> groups,
                                          SliceExchange* exchange = nullptr);
std::vector<std::string> optimizer_names();

// What optimizer `name` knows, its default first. Throws std::invalid_argument as make_optimizer().
std::vector<std::string> optimizer_flavours(const std::string& name);
// The flavour that make_optimizer(options) uses. Throws std::invalid_argument as it does.
std::string optimizer_flavour(const OptimizerOptions& options);
// Whether optimizer `name` looks at `option`: beta1, beta2, epsilon or momentum. Throws
// std::invalid_argument as make_optimizer().
bool optimizer_uses(const std::string& name, const std::string& option);
// Whether it is an optimizer of hidden matrices, which leaves other parameters to AdamW. Throws
// std::invalid_argument as make_optimizer().
bool optimizes_matrices(const std::string& name);

// Scales all gradients by min(1, max_norm / (norm + 1e-6)) and returns `norm`, the Euclidean norm
// over all of them before scaling, accumulated in float64 in list order so that it does not depend
// on how gradients are bucketed. max_norm <= 0 only measures, and so does a norm that is not
// finite: the caller decides what to do with such a step. Parameters without a defined gradient
// count nothing. With an `exchange` the parameters are slices, and the norm is that of all ranks'.
double clip_global_norm(const std::vector<torch::Tensor>& parameters, double max_norm,
                        SliceExchange* exchange = nullptr);

}  // namespace tupelo
