#include "launcher/model_parameters.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "launcher/value_text.h"
#include "optim/parameter_groups.h"

namespace tupelo {
namespace {

const std::string kLayers = "roberta.encoder.layer.";
const std::string kEncodingsPrefix = "roberta.position.";

std::int64_t number_at(const std::string& name, const std::string& prefix) {
  return std::stoll(name.substr(prefix.size()));
}

bool is_hidden_matrix(const NamedParameter& parameter) {
  return parameter.name.starts_with(kLayers) && parameter.tensor.dim() == 2;
}

// How far below the heads a parameter is: they are at 0, the last layer at 1, the first one at
// their number, the embeddings below it. An encoding is where the first layer that it serves is.
std::int64_t depth(const std::string& parameter, const RobertaForMaskedLm& model) {
  const std::int64_t layers = model.options().layers;
  if (parameter.starts_with(kLayers)) return layers - number_at(parameter, kLayers);
  if (parameter.starts_with("roberta.embeddings.")) return layers + 1;
  if (parameter.starts_with("roberta.mask_decoder.")) return 1;
  if (!parameter.starts_with(kEncodingsPrefix)) return 0;
  const auto group = static_cast<std::size_t>(number_at(parameter, kEncodingsPrefix));
  const std::vector<std::int64_t>& served = model.plan().groups.at(group).layers;
  return layers - *std::min_element(served.begin(), served.end());
}

// How the learning rates of single parameters differ within the groups of make_parameter_groups().
class Multipliers {
 public:
  Multipliers(const RobertaForMaskedLm& model, const UpdateOptions& options)
      : model_(model),
        recommended_(options.position_lr_multiplier == "auto"),
        layer_decay_(options.layer_decay),
        of_matrices_(optimizes_matrices(options.optimizer.name)) {
    if (of_matrices_ && options.adamw_learning_rate != "auto") {
      rest_ = parse_number(options.adamw_learning_rate, 0, std::numeric_limits<double>::max()) /
              options.schedule.peak;
    }
  }

  bool is_matrix(const NamedParameter& parameter) const {
    return of_matrices_ && is_hidden_matrix(parameter);
  }

  double of(const NamedParameter& parameter) const {
    double multiplier = recommended_ ? model_.learning_rate_multiplier(parameter.name) : 1.0;
    if (of_matrices_ && !is_hidden_matrix(parameter)) multiplier *= rest_;
    if (layer_decay_ != 1.0) {
      multiplier *= std::pow(layer_decay_, static_cast<double>(depth(parameter.name, model_)));
    }
    return multiplier;
  }

 private:
  const RobertaForMaskedLm& model_;
  bool recommended_;
  double layer_decay_;
  bool of_matrices_;
  double rest_ = 1.0;
};

// `group` cut into one group per multiplier and kind.
std::vector<ParameterGroup> cut(const ParameterGroup& group, const Multipliers& multipliers) {
  std::map<std::pair<bool, double>, std::vector<NamedParameter>> parts;
  for (const NamedParameter& parameter : group.parameters) {
    parts[{multipliers.is_matrix(parameter), multipliers.of(parameter)}].push_back(parameter);
  }
  std::vector<ParameterGroup> result;
  for (auto& [key, parameters] : parts) {
    ParameterGroup part = group;
    part.parameters = std::move(parameters);
    part.learning_rate_multiplier *= key.second;
    part.hidden_matrices = key.first;
    result.push_back(std::move(part));
  }
  return result;
}

// Settings that speak of parameters which the model does not have.
void refuse_idle_settings(const UpdateOptions& options) {
  const std::string reason =
      ", which has no effect: no position encoding of this model has parameters";
  const auto require = [&](bool holds, const std::string& setting) {
    if (!holds) throw std::invalid_argument(setting + reason);
  };
  require(options.positions == "update", "optim.positions is " + options.positions);
  require(options.position_lr_multiplier == "auto",
          "optim.position-lr-multiplier is " + options.position_lr_multiplier);
  require(options.position_weight_decay == UpdateOptions{}.position_weight_decay,
          "optim.position-weight-decay is " + number_text(options.position_weight_decay));
  require(parse_duration(options.position_frozen_steps).amount == 0,
          "optim.position-frozen-steps is " + options.position_frozen_steps);
}

}  // namespace

std::vector<NamedParameter> named_parameters(const RobertaForMaskedLm& model) {
  std::vector<NamedParameter> parameters;
  for (const auto& parameter : model.named_parameters()) {
    parameters.push_back({parameter.key(), parameter.value()});
  }
  return parameters;
}

std::vector<ParameterGroup> parameter_groups(const RobertaForMaskedLm& model,
                                             const UpdateOptions& options,
                                             std::int64_t position_frozen_steps) {
  ParameterGroupOptions group_options;
  group_options.weight_decay = options.weight_decay;
  group_options.position_weight_decay = options.position_weight_decay;
  group_options.position_frozen_steps = position_frozen_steps;
  if (options.position_lr_multiplier != "auto") {
    group_options.position_learning_rate_multiplier =
        parse_number(options.position_lr_multiplier, 0, std::numeric_limits<double>::max());
  }
  const RobertaForMaskedLm::ParameterRoles roles = model.parameter_roles();
  if (roles.position_decayed.empty() && roles.position_undecayed.empty()) {
    refuse_idle_settings(options);
  }
  const Multipliers multipliers(model, options);
  std::vector<ParameterGroup> result;
  for (const ParameterGroup& group : make_parameter_groups(
           named_parameters(model),
           {roles.decayed, roles.undecayed, roles.position_decayed, roles.position_undecayed},
           group_options)) {
    for (ParameterGroup& part : cut(group, multipliers)) result.push_back(std::move(part));
  }
  return result;
}

}  // namespace tupelo
