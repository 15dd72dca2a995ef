#include "optim/optimizer.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "optim/adamw.h"
#include "optim/lamb.h"
#include "optim/lion.h"
#include "optim/muon.h"
#include "optim/stable_adamw.h"
#include "optim/unknown_name.h"

namespace tupelo {
namespace {

struct Row {
  const char* name;
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions&, std::vector<ParameterGroup>,
                                     SliceExchange*);
  std::vector<std::string> (*flavours)();
  const char* uses;  // names of options, a space around each
  bool of_matrices = false;
};

constexpr std::array<Row, 5> kOptimizers = {
    {{"adamw", make_adamw, adamw_flavours, " beta1 beta2 epsilon "},
     {"lamb", make_lamb, lamb_flavours, " beta1 beta2 epsilon "},
     {"lion", make_lion, lion_flavours, " beta1 beta2 "},
     {"stable-adamw", make_stable_adamw, stable_adamw_flavours, " beta1 beta2 epsilon "},
     {"muon", make_muon, muon_flavours, " beta1 beta2 epsilon momentum ", true}}};

const Row& find_row(const std::string& name) {
  for (const Row& row : kOptimizers) {
    if (name == row.name) return row;
  }
  throw std::invalid_argument(unknown_name_message("optimizer", name, optimizer_names()));
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          std::vector<ParameterGroup> groups,
                                          SliceExchange* exchange) {
  OptimizerOptions resolved = options;
  resolved.flavour = optimizer_flavour(options);
  return find_row(options.name).make(resolved, std::move(groups), exchange);
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

bool optimizer_uses(const std::string& name, const std::string& option) {
  return std::string(find_row(name).uses).find(" " + option + " ") != std::string::npos;
}

bool optimizes_matrices(const std::string& name) { return find_row(name).of_matrices; }

}  // namespace tupelo
