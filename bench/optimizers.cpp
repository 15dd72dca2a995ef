// What an update of all parameters of a RoBERTa costs, by optimizer.
#include <torch/types.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/run_bench.h"
#include "bench/samples.h"
#include "optim/optimizer.h"

namespace tupelo::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Matrices of layers, and the rest.
std::vector<ParameterGroup> draw_groups(const Arguments& arguments) {
  const std::int64_t hidden = arguments.number("--hidden"), wide = 4 * hidden;
  ParameterGroup matrices{"matrices", {}, 1.0, 0.01};
  ParameterGroup rest{"rest", {}, 1.0, 0.0};
  matrices.hidden_matrices = true;
  const auto add = [](ParameterGroup& group, std::vector<std::int64_t> shape) {
    torch::Tensor tensor = 0.02 * torch::randn(shape);
    tensor.mutable_grad() = 1e-3 * torch::randn(shape);
    group.parameters.push_back({std::to_string(group.parameters.size()), tensor});
  };
  add(rest, {arguments.number("--vocab"), hidden});
  for (std::int64_t layer = 0; layer < arguments.number("--layers"); ++layer) {
    for (int i = 0; i < 4; ++i) add(matrices, {hidden, hidden});
    add(matrices, {wide, hidden});
    add(matrices, {hidden, wide});
    for (int i = 0; i < 9; ++i) add(rest, {hidden});
    add(rest, {wide});
  }
  // Names are the group's alone until here.
  for (ParameterGroup* group : {&matrices, &rest}) {
    for (NamedParameter& parameter : group->parameters) {
      parameter.name = group->name + parameter.name;
    }
  }
  return {matrices, rest};
}

// The same numbers as one tensor, each group.
std::vector<ParameterGroup> flattened(std::vector<ParameterGroup> groups) {
  for (ParameterGroup& group : groups) {
    std::vector<torch::Tensor> weights, gradients;
    for (const NamedParameter& parameter : group.parameters) {
      weights.push_back(parameter.tensor.flatten());
      gradients.push_back(parameter.tensor.grad().flatten());
    }
    torch::Tensor whole = torch::cat(weights);
    whole.mutable_grad() = torch::cat(gradients);
    group.parameters = {{group.name, whole}};
    group.hidden_matrices = false;
  }
  return groups;
}

struct Row {
  std::string name;
  std::unique_ptr<Optimizer> optimizer;
  std::int64_t steps = 0;
  Samples seconds = {};

  double state_bytes() {
    double bytes = 0;
    for (const auto& named : optimizer->state()) {
      bytes += static_cast<double>(named.second.nbytes());
    }
    return bytes;
  }
};

std::vector<Row> make_rows(const std::vector<ParameterGroup>& groups) {
  std::vector<Row> rows;
  OptimizerOptions options;
  rows.push_back({"adamw", make_optimizer(options, groups)});
  rows.push_back({"adamw, flat tensors", make_optimizer(options, flattened(groups))});
  for (const std::string& name : optimizer_names()) {
    if (name == options.name) continue;
    OptimizerOptions other;
    other.name = name;
    rows.push_back({name, make_optimizer(other, groups)});
  }
  return rows;
}

void measure(std::vector<Row>& rows, std::int64_t rounds) {
  // Round 0 brings memory in and does not count.
  for (std::int64_t round = 0; round <= rounds; ++round) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Row& row = rows[(i + static_cast<std::size_t>(round)) % rows.size()];
      const auto start = Clock::now();
      row.optimizer->step(1e-4, ++row.steps);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (round > 0) row.seconds.values.push_back(seconds);
    }
  }
}

void run(const Arguments& arguments) {
  torch::manual_seed(1);
  const std::vector<ParameterGroup> groups = draw_groups(arguments);
  double parameters = 0;
  for (const ParameterGroup& group : groups) {
    for (const NamedParameter& parameter : group.parameters) {
      parameters += static_cast<double>(parameter.tensor.numel());
    }
  }
  std::vector<Row> rows = make_rows(groups);
  measure(rows, arguments.number("--rounds"));
  if (!arguments.json()) {
    std::printf("%.1f M parameters, %s\n%-20s %10s %10s %8s %16s\n", parameters / 1e6,
                arguments.list().c_str(), "optimizer", "min ms", "median ms", "ratio",
                "state bytes each");
  }
  const double first = rows.front().seconds.min();
  for (Row& row : rows) {
    const char* format =
        arguments.json()
            ? "{\"bench\": \"optimizers\", \"optimizer\": \"%s\", \"min_ms\": %.3f, "
              "\"median_ms\": %.3f, \"ratio\": %.4f, \"state_bytes_per_parameter\": %.3f}\n"
            : "%-20s %10.2f %10.2f %8.3f %16.2f\n";
    std::printf(format, row.name.c_str(), row.seconds.min() * 1e3, row.seconds.median() * 1e3,
                row.seconds.min() / first, row.state_bytes() / parameters);
  }
}

}  // namespace
}  // namespace tupelo::bench

int main(int argc, char** argv) {
  return tupelo::bench::run_bench(
      "optimizers", argc, argv,
      {{"--layers", "4"}, {"--hidden", "768"}, {"--vocab", "20000"}, {"--rounds", "7"}},
      tupelo::bench::run);
}
