#include "launcher/model_parameters.h"

#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "launcher/value_text.h"
#include "optim/parameter_groups.h"

namespace tupelo {
namespace {

std::vector<NamedParameter> named_parameters(const RobertaForMaskedLm& model) {
  std::vector<NamedParameter> parameters;
  for (const auto& parameter : model.named_parameters()) {
    parameters.push_back({parameter.key(), parameter.value()});
  }
  return parameters;
}

// `group` cut into one group per multiplier that the model recommends for its parameters.
std::vector<ParameterGroup> by_recommendation(const ParameterGroup& group,
                                              const RobertaForMaskedLm& model) {
  std::map<double, std::vector<NamedParameter>> parts;
  for (const NamedParameter& parameter : group.parameters) {
    parts[model.learning_rate_multiplier(parameter.name)].push_back(parameter);
  }
  std::vector<ParameterGroup> result;
  for (auto& [multiplier, parameters] : parts) {
    ParameterGroup part = group;
    part.parameters = std::move(parameters);
    part.learning_rate_multiplier = multiplier;
    result.push_back(std::move(part));
  }
  return result;
}

// Settings that speak of parameters which the model does not have.
void refuse_idle_settings(const UpdateOptions& options) {
  const std::string reason =
      ", which has no effect: no position encoding of this model has "
      "parameters";
  const auto require = [&](bool holds, const std::string& setting) {
    if (!holds) throw std::invalid_argument(setting + reason);
  };
  require(options.positions == "update", "optim.positions is " + options.positions);
  require(options.position_lr_multiplier == "auto",
          "optim.position-lr-multiplier is " + options.position_lr_multiplier);
  require(parse_duration(options.position_frozen_steps).amount == 0,
          "optim.position-frozen-steps is " + options.position_frozen_steps);
}

}  // namespace

std::vector<ParameterGroup> parameter_groups(const RobertaForMaskedLm& model,
                                             const UpdateOptions& options,
                                             std::int64_t position_frozen_steps) {
  const bool recommended = options.position_lr_multiplier == "auto";
  ParameterGroupOptions group_options;
  group_options.weight_decay = options.weight_decay;
  group_options.position_weight_decay = options.position_weight_decay;
  group_options.position_frozen_steps = position_frozen_steps;
  if (!recommended) {
    group_options.position_learning_rate_multiplier =
        parse_number(options.position_lr_multiplier, 0, std::numeric_limits<double>::max());
  }
  const RobertaForMaskedLm::ParameterRoles roles = model.parameter_roles();
  if (roles.position_decayed.empty() && roles.position_undecayed.empty()) {
    refuse_idle_settings(options);
  }
  auto groups = make_parameter_groups(
      named_parameters(model),
      {roles.decayed, roles.undecayed, roles.position_decayed, roles.position_undecayed},
      group_options);
  if (!recommended) return groups;
  std::vector<ParameterGroup> result;
  for (const ParameterGroup& group : groups) {
    for (ParameterGroup& part : by_recommendation(group, model)) result.push_back(std::move(part));
  }
  return result;
}

}  // namespace tupelo
