#include "optim/parameter_groups.h"

#include <cstddef>
#include <map>
#include <set>
#include <stdexcept>

namespace tupelo {
namespace {

// Parameter name -> index of its group.
std::map<std::string, std::size_t> index_names(
    const std::vector<const std::vector<std::string>*>& lists,
    const std::vector<ParameterGroup>& groups) {
  std::map<std::string, std::size_t> group_of;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    for (const std::string& name : *lists[i]) {
      const auto [found, added] = group_of.emplace(name, i);
      if (!added) {
        throw std::invalid_argument("parameter '" + name + "' is listed twice: as " +
                                    groups[found->second].name + " and as " + groups[i].name);
      }
    }
  }
  return group_of;
}

}  // namespace

std::vector<ParameterGroup> make_parameter_groups(const std::vector<NamedParameter>& parameters,
                                                  const ParameterGroupNames& names,
                                                  const ParameterGroupOptions& options) {
  const double multiplier = options.position_learning_rate_multiplier;
  const std::int64_t frozen = options.position_frozen_steps;
  std::vector<ParameterGroup> groups = {
      {"decayed", {}, 1.0, options.weight_decay, 0},
      {"undecayed", {}, 1.0, 0.0, 0},
      {"position_decayed", {}, multiplier, options.position_weight_decay, frozen},
      {"position_undecayed", {}, multiplier, 0.0, frozen}};
  std::map<std::string, std::size_t> group_of = index_names(
      {&names.decayed, &names.undecayed, &names.position_decayed, &names.position_undecayed},
      groups);
  std::set<std::string> seen;
  for (const NamedParameter& parameter : parameters) {
    const auto found = group_of.find(parameter.name);
    if (found == group_of.end()) {
      throw std::invalid_argument("parameter '" + parameter.name + "' is in no parameter group");
    }
    if (!seen.insert(parameter.name).second) {
      throw std::invalid_argument("two parameters are called '" + parameter.name + "'");
    }
    groups[found->second].parameters.push_back(parameter);
  }
  for (const auto& [name, group] : group_of) {
    if (seen.count(name) == 0) {
      throw std::invalid_argument("parameter group '" + groups[group].name + "' lists '" + name +
                                  "', which no parameter is called");
    }
  }
  return groups;
}

}  // namespace tupelo
