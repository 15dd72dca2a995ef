#include "optim/optimizer.h"

#include <array>
#include <stdexcept>

#include "optim/adamw.h"
#include "optim/unknown_name.h"

namespace tupelo {
namespace {

struct Row {
  const char* name;
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions&, std::vector<ParameterGroup>);
};

constexpr std::array<Row, 1> kOptimizers = {{{"adamw", make_adamw}}};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          std::vector<ParameterGroup> groups) {
  for (const Row& row : kOptimizers) {
    if (options.name == row.name) return row.make(options, std::move(groups));
  }
  throw std::invalid_argument(unknown_name("optimizer", options.name, optimizer_names()));
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Row& row : kOptimizers) names.emplace_back(row.name);
  return names;
}

}  // namespace tupelo
