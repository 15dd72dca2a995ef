#include "launcher/model_loading.h"

#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

namespace tupelo {

void load_parameters(RobertaForMaskedLm& model, const NamedTensors& tensors) {
  std::map<std::string, torch::Tensor> saved(tensors.begin(), tensors.end());
  auto parameters = model.named_parameters();
  for (const auto& parameter : parameters) {
    const auto found = saved.find(parameter.key());
    if (found == saved.end()) {
      throw std::invalid_argument("the checkpoint has no parameter '" + parameter.key() +
                                  "', which this model needs");
    }
    if (found->second.sizes() != parameter.value().sizes()) {
      std::ostringstream sentence;
      sentence << "parameter '" << parameter.key() << "' has shape " << found->second.sizes()
               << " in the checkpoint and " << parameter.value().sizes() << " in this model";
      throw std::invalid_argument(sentence.str());
    }
  }
  if (saved.size() != parameters.size()) {
    for (const auto& parameter : parameters) saved.erase(parameter.key());
    throw std::invalid_argument("the checkpoint has a parameter '" + saved.begin()->first +
                                "', which this model does not know");
  }
  const torch::NoGradGuard no_gradients;
  for (auto& parameter : parameters) parameter.value().copy_(saved.at(parameter.key()));
}

}  // namespace tupelo
