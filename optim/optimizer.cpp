#include "optim/optimizer.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "optim/adamw.h"
#include "optim/lamb.h"
#include "optim/unknown_name.h"

namespace tupelo {
namespace {

struct Row {
  const char* name;
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions&, std::vector<ParameterGroup>);
  std::vector<std::string> (*flavours)();
};

constexpr std::array<Row, 2> kOptimizers = {
    {{"adamw", make_adamw, adamw_flavours}, {"lamb", make_lamb, lamb_flavours}}};

const Row& find_row(const std::string& name) {
  for (const Row& row : kOptimizers) {
    if (name == row.name) return row;
  }
  throw std::invalid_argument(unknown_name_message("optimizer", name, optimizer_names()));
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          std::vector<ParameterGroup> groups) {
  OptimizerOptions resolved = options;
  resolved.flavour = optimizer_flavour(options);
  return find_row(options.name).make(resolved, std::move(groups));
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Row& row : kOptimizers) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> optimizer_flavours(const std::string& name) {
  return find_row(name).flavours();
}

std::string optimizer_flavour(const OptimizerOptions& options) {
  const std::vector<std::string> known = optimizer_flavours(options.name);
  if (options.flavour == kDefaultFlavour) return known.front();
  if (std::find(known.begin(), known.end(), options.flavour) == known.end()) {
    throw std::invalid_argument(
        unknown_name_message(options.name + " flavour", options.flavour, known));
  }
  return options.flavour;
}

}  // namespace tupelo
