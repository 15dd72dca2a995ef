#include "model/position/floater_flow.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "model/position/kinds.h"

namespace tupelo {
namespace {

using torch::Tensor;

FlowSolver solver_of(const std::string& text) {
  return text == "euler" ? FlowSolver::kEuler
                         : (text == "rk4" ? FlowSolver::kRungeKutta4 : FlowSolver::kMidpoint);
}

std::int64_t evaluations_per_step(FlowSolver solver) {
  return solver == FlowSolver::kEuler ? 1 : (solver == FlowSolver::kMidpoint ? 2 : 4);
}

// f with the times at which it is wanted, multiples of half a step, multiplied in beforehand: all
// b + t w at once, and as separate tensors, so that the sequential part is two products and no
// gradient of a slice.
class FlowAtHalfSteps {
 public:
  FlowAtHalfSteps(const Linear& first, const Linear& second, double half_step,
                  std::int64_t half_steps) {
    const Tensor times = at::arange(half_steps + 1, at::TensorOptions().dtype(at::kDouble))
                             .mul_(half_step)
                             .to(first.weight.device());
    std::tie(first_weight_, first_bias_) = split(first, times);
    std::tie(second_weight_, second_bias_) = split(second, times);
  }

  // [M,H] for points [M,H] at time `half_steps` half steps.
  Tensor operator()(std::int64_t half_steps, const Tensor& points) const {
    const auto time = static_cast<std::size_t>(half_steps);
    const Tensor inner = at::linear(points, first_weight_, first_bias_[time]).relu();
    return at::linear(inner, second_weight_, second_bias_[time]);
  }

 private:
  static std::pair<Tensor, std::vector<Tensor>> split(const Linear& map, const Tensor& times) {
    const Tensor weight = at_least_float32(map.weight), bias = at_least_float32(map.bias);
    const std::int64_t width = weight.size(0);
    const Tensor of_time = weight.select(1, width);
    const Tensor biases = at::addcmul(bias, times.to(weight.scalar_type()).unsqueeze(1), of_time);
    return {weight.narrow(1, 0, width), biases.unbind(0)};
  }

  Tensor first_weight_, second_weight_;
  std::vector<Tensor> first_bias_, second_bias_;
};

// From time 2k half steps to 2k + 2; `step` is a whole one.
Tensor stepped(FlowSolver solver, const FlowAtHalfSteps& flow, std::int64_t time,
               const Tensor& points, double step) {
  const Tensor slope = flow(time, points);
  if (solver == FlowSolver::kEuler) {
    return at::add(points, slope, step);
  }
  const Tensor middle = flow(time + 1, at::add(points, slope, step / 2));
  if (solver == FlowSolver::kMidpoint) {
    return at::add(points, middle, step);
  }
  const Tensor again = flow(time + 1, at::add(points, middle, step / 2));
  const Tensor end = flow(time + 2, at::add(points, again, step));
  return points + (slope + 2.0 * middle + 2.0 * again + end) * (step / 6);
}

// N(0, 2 / (in + out)), bias 0.
void fill_xavier(Linear& map, const at::Generator& generator) {
  const auto ends = static_cast<double>(map.weight.size(0) + map.weight.size(1));
  map.initialize(std::sqrt(2.0 / ends), generator);
}

}  // namespace

std::vector<PositionOptionKind> FlowSettings::options() {
  return {{"solver", "midpoint", {"midpoint", "euler", "rk4"}, "how the flow is followed"},
          {"delta", "0.01", {}, "time between neighbouring positions", 0, true},
          {"substeps", "5", {}, "steps of the solver in that time", 1, false, /*maximum=*/1000},
          {"refresh_every",
           "1",
           {},
           "training calls that share a path; only the first of them trains the flow"}};
}

FlowSettings::FlowSettings(const OptionReader& options)
    : solver(solver_of(options.text("solver"))),
      delta(options.number("delta")),
      substeps(options.integer("substeps")),
      refresh_every(options.integer("refresh_every")) {}

FloaterFlow::FloaterFlow(std::int64_t hidden_size, const FlowSettings& settings)
    : settings_(settings),
      first_(register_module("0", std::make_shared<Linear>(hidden_size + 1, hidden_size))),
      second_(register_module("2", std::make_shared<Linear>(hidden_size + 1, hidden_size))) {}

void FloaterFlow::initialize(const at::Generator& generator) {
  fill_xavier(*first_, generator);
  fill_xavier(*second_, generator);
  training_calls_ = 0;
  kept_ = Tensor();
}

Tensor FloaterFlow::path(const Tensor& start, std::int64_t tokens) const {
  const double step = settings_.delta / static_cast<double>(settings_.substeps);
  const std::int64_t steps = (tokens - 1) * settings_.substeps;
  const FlowAtHalfSteps flow(*first_, *second_, step / 2, 2 * steps);
  Tensor points = at_least_float32(start).reshape({-1, start.size(-1)});
  std::vector<Tensor> places = {points};
  for (std::int64_t i = 0; i < steps; ++i) {
    points = stepped(settings_.solver, flow, 2 * i, points, step);
    if ((i + 1) % settings_.substeps == 0) {
      places.push_back(points);
    }
  }
  std::vector<std::int64_t> shape = start.sizes().vec();
  shape.insert(shape.begin(), tokens);
  return at::stack(places).view(shape);
}

bool FloaterFlow::is_kept(const Tensor& start, std::int64_t tokens) const {
  return kept_.defined() && kept_.size(0) >= tokens && kept_.device() == start.device() &&
         kept_.scalar_type() == at_least_float32(start).scalar_type();
}

Tensor FloaterFlow::refreshed_path(const Tensor& start, std::int64_t tokens, std::int64_t usual) {
  if (settings_.refresh_every == 1 || !is_training() || !at::GradMode::is_enabled()) {
    return path(start, tokens);
  }
  const bool due = training_calls_++ % settings_.refresh_every == 0;
  if (!due && is_kept(start, tokens)) {
    return kept_.narrow(0, 0, tokens);
  }
  const Tensor computed = path(start, std::max(tokens, usual));
  kept_ = computed.detach();
  return computed.narrow(0, 0, tokens);
}

double FloaterFlow::path_flops(std::int64_t points, std::int64_t tokens) const {
  const std::int64_t evaluations =
      (tokens - 1) * settings_.substeps * evaluations_per_step(settings_.solver);
  const auto width = static_cast<double>(first_->weight.size(0));
  return static_cast<double>(evaluations * points) * 2.0 * 2.0 * width * width;
}

}  // namespace tupelo
