#include "launcher/trained_parameters.h"

#include <ATen/core/grad_mode.h>

#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace tupelo {
namespace {

at::ScalarType type_of(const std::string& precision) {
  if (precision == "bf16") return at::kBFloat16;
  if (precision == "fp16") return at::kHalf;
  return at::kFloat;
}

GradientReducerOptions reducer_options(const TrainOptions& options, const ShardGroups& groups) {
  GradientReducerOptions result;
  result.bucket_bytes = static_cast<std::size_t>(options.bucket_bytes);
  result.scatter = groups.shards != nullptr;
  result.replicas = groups.replicas;
  if (options.reduce_precision == "bf16") result.wire = at::kBFloat16;
  return result;
}

// The part of a forward pass that is the first to use a parameter, as before_use() numbers them.
std::int64_t layer_of(const std::string& parameter, const RobertaForMaskedLm& model) {
  const std::string layers = "roberta.encoder.layer.";
  if (parameter.starts_with(layers)) return std::stoll(parameter.substr(layers.size()));
  const bool early = parameter.starts_with("roberta.embeddings.") ||
                     parameter.starts_with("roberta.position.") ||
                     parameter.starts_with("roberta.mask_decoder.");
  return early ? -1 : model.options().layers;
}

std::string sizes_text(at::IntArrayRef sizes) {
  std::ostringstream text;
  text << sizes;
  return text.str();
}

}  // namespace

// In a storage of their own where that is another type.
void convert_parameters(RobertaForMaskedLm& model, const std::string& precision) {
  for (torch::Tensor& parameter : model.parameters()) {
    parameter.set_data(parameter.detach().to(type_of(precision)));
  }
}

TrainedParameters::TrainedParameters(RobertaForMaskedLm& model, const TrainOptions& options,
                                     const ShardGroups& groups)
    : groups_(groups), model_(model) {
  std::vector<torch::Tensor> values;
  for (const auto& parameter : model.named_parameters()) {
    index_.emplace(parameter.key(), names_.size());
    names_.push_back(parameter.key());
    values.push_back(parameter.value().detach());
    if (groups.world.rank() == 0) initial_.emplace_back(parameter.key(), values.back());
    parameters_.push_back(parameter.value());
  }
  convert_parameters(model, options.precision);  // `values` keep theirs
  of_layer_.resize(static_cast<std::size_t>(model.options().layers) + 2);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    of_layer_[static_cast<std::size_t>(layer_of(names_[i], model) + 1)].push_back(i);
  }
  Communicator& sharing = groups.shards != nullptr ? *groups.shards : groups.world;
  reducer_ =
      std::make_unique<GradientReducer>(parameters_, sharing, reducer_options(options, groups));
  shards_ = std::make_unique<ParameterShards>(*reducer_, sharing, values);
  model.before_use([this](std::int64_t layer) { wait_for_layer(layer); });
}

TrainedParameters::~TrainedParameters() { model_.before_use(nullptr); }

void TrainedParameters::wait_for_layer(std::int64_t layer) {
  for (const std::size_t parameter : of_layer_[static_cast<std::size_t>(layer + 1)]) {
    shards_->wait_for(parameter);
  }
}

int TrainedParameters::shard_count() const {
  return groups_.shards != nullptr ? groups_.shards->world_size() : 1;
}

std::vector<NamedParameter> TrainedParameters::masters() const {
  std::vector<NamedParameter> masters;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    masters.push_back({names_[i], shards_->slices()[i].master});
    if (groups_.shards != nullptr) masters.back().slice_of = parameters_[i].sizes().vec();
  }
  return masters;
}

std::vector<ParameterGroup> TrainedParameters::masters(std::vector<ParameterGroup> groups) const {
  const std::vector<NamedParameter> all = masters();
  for (ParameterGroup& group : groups) {
    for (NamedParameter& parameter : group.parameters) parameter = all[index_.at(parameter.name)];
  }
  return groups;
}

std::vector<torch::Tensor> TrainedParameters::masters(const std::vector<std::string>& names) const {
  std::vector<torch::Tensor> tensors;
  for (const std::string& name : names) {
    tensors.push_back(shards_->slices()[index_.at(name)].master);
  }
  return tensors;
}

NamedTensors TrainedParameters::master_tensors() const {
  NamedTensors tensors;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    tensors.emplace_back(names_[i], shards_->slices()[i].master.detach());
  }
  return tensors;
}

void TrainedParameters::divide_gradients(double divisor) {
  const torch::NoGradGuard no_gradients;
  std::vector<torch::Tensor> gradients;
  for (const ParameterSlice& slice : shards_->slices()) gradients.push_back(slice.master.grad());
  at::_foreach_mul_(gradients, 1 / divisor);
}

std::size_t TrainedParameters::owner_of(const std::string& tensor) const {
  const auto plain = index_.find(tensor);
  if (plain != index_.end()) return plain->second;
  const auto found = index_.find(tensor.substr(tensor.find('.') + 1));
  TORCH_CHECK(found != index_.end(), "no parameter belongs to '", tensor, "'");
  return found->second;
}

NamedTensors TrainedParameters::gather(const NamedTensors& parts) const {
  NamedTensors tensors;
  for (const auto& [name, part] : parts) {
    const torch::Tensor whole = shards_->whole(owner_of(name), part);
    if (groups_.world.rank() == 0) tensors.emplace_back(name, whole);
  }
  return tensors;
}

NamedTensors TrainedParameters::gather_parameters() const { return gather(master_tensors()); }

void TrainedParameters::check_whole(const std::string& what, const NamedTensors& tensors,
                                    const NamedTensors& parts) const {
  std::map<std::string, torch::Tensor> left(tensors.begin(), tensors.end());
  for (const auto& [name, part] : parts) {
    const auto found = left.find(name);
    if (found == left.end()) {
      throw std::invalid_argument("the checkpoint has no " + what + " '" + name +
                                  "', which this model needs");
    }
    const at::IntArrayRef sizes = parameters_[owner_of(name)].sizes();
    if (found->second.sizes() != sizes) {
      throw std::invalid_argument(what + " '" + name + "' has shape " +
                                  sizes_text(found->second.sizes()) + " in the checkpoint and " +
                                  sizes_text(sizes) + " in this model");
    }
    left.erase(found);
  }
  if (!left.empty()) {
    throw std::invalid_argument("the checkpoint has a " + what + " '" + left.begin()->first +
                                "', which this model does not know");
  }
}

void TrainedParameters::scatter(const NamedTensors& tensors, const NamedTensors& parts) const {
  const torch::NoGradGuard no_gradients;
  const std::map<std::string, torch::Tensor> by_name(tensors.begin(), tensors.end());
  for (const auto& [name, part] : parts) {
    const std::size_t owner = owner_of(name);
    // A tensor of its own: what rank 0 sends may be memory that is not to be written to.
    const torch::Tensor whole = torch::empty(parameters_[owner].sizes(), part.options());
    if (groups_.world.rank() == 0) whole.copy_(by_name.at(name));
    groups_.world.broadcast(whole, 0)->wait();
    torch::Tensor own = part;
    own.copy_(shards_->part(owner, whole));
  }
}

void TrainedParameters::scatter_parameters(const NamedTensors& tensors) {
  scatter(tensors, master_tensors());
  publish();
  wait();
  drop_initial();
}

void TrainedParameters::scatter_initial() {
  const NamedTensors initial = std::move(initial_);
  scatter_parameters(initial);
}

TrainedParameters::Memory TrainedParameters::memory() const {
  Memory memory;
  for (const torch::Tensor& parameter : parameters_) memory.parameters += parameter.nbytes();
  for (const torch::Tensor& bucket : reducer_->buckets()) memory.gradients += bucket.nbytes();
  memory.masters = shards_->master_bytes();
  return memory;
}

std::vector<double> TrainedParameters::sum(std::vector<double> values) {
  return groups_.shards->sum(std::move(values));
}

torch::Tensor TrainedParameters::whole(const std::string& parameter, const torch::Tensor& part) {
  return shards_->whole(index_.at(parameter), part);
}

torch::Tensor TrainedParameters::part(const std::string& parameter, const torch::Tensor& whole) {
  return shards_->part(index_.at(parameter), whole);
}

}  // namespace tupelo
