#include "launcher/memory_forecast.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "launcher/console.h"
#include "launcher/model_parameters.h"
#include "launcher/text_table.h"
#include "optim/optimizer.h"

namespace tupelo {
namespace {

// Chosen or given; and what it was chosen from, when a choice was needed or `always` wants it.
struct Resolved {
  RecomputePolicy policy;
  ActivationProfile profile;
};

Resolved resolved_policy(RobertaForMaskedLm& model, const ActivationShape& shape, bool always) {
  Resolved resolved;
  const ModelOptions& options = model.options();
  resolved.policy = parse_recompute(options.recompute, options.layers, "model.recompute");
  const std::optional<std::int64_t> budget = resolved.policy.budget_bytes;
  if (budget || always) resolved.profile = profile_activations(model, shape);
  if (!budget) return resolved;
  try {
    resolved.policy.layers = choose_recompute(resolved.profile, *budget);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("model.recompute: " + std::string(error.what()));
  }
  resolved.policy.budget_bytes.reset();
  return resolved;
}

constexpr std::int64_t kFloat32Bytes = 4;

std::string shape_text(const ActivationShape& shape) {
  return std::to_string(shape.rows) + " x " + grouped(shape.tokens) + " tokens";
}

// Counts without making anything: an optimizer of tensors that have shapes only.
std::int64_t optimizer_state_bytes(const RobertaForMaskedLm& model, const RunConfig& config) {
  std::vector<ParameterGroup> groups = parameter_groups(model, config.optim, 0);
  for (ParameterGroup& group : groups) {
    for (NamedParameter& parameter : group.parameters) {
      parameter.tensor =
          at::empty_like(parameter.tensor, at::TensorOptions(at::kMeta).dtype(at::kFloat));
    }
  }
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] :
       make_optimizer(config.optim.optimizer, std::move(groups))->state()) {
    bytes += static_cast<std::int64_t>(tensor.nbytes());
  }
  return bytes;
}

std::string with_unit(std::int64_t bytes) {
  return grouped(bytes) + " bytes (" + bytes_text(bytes) + ")";
}

std::string part_of(const MemoryForecast& forecast, std::size_t layer) {
  RecomputePolicy one;
  one.layers = {forecast.policy.layers[layer]};
  return one.to_string();
}

}  // namespace

ActivationShape micro_batch_shape(const RunConfig& config, std::int64_t tokens) {
  const DataOptions& data = config.data;
  std::int64_t longest = data.sequence_length;
  for (const RampPart& part : data.length_ramp) longest = std::max(longest, part.value);
  ActivationShape shape;
  shape.tokens = tokens > 0 ? tokens : longest;
  shape.rows = data.micro_batch;
  shape.masked = std::max<std::int64_t>(
      1, std::llround(data.mask_fraction * static_cast<double>(shape.rows * shape.tokens)));
  shape.pairs = data.sentence_pairs ? shape.rows : 0;
  shape.padding = data.packing == Packing::kDocument;
  shape.packed = data.packing == Packing::kBestFit;
  return shape;
}

std::string resolve_recompute(RobertaForMaskedLm& model, const RunConfig& config) {
  const ActivationShape shape = micro_batch_shape(config);
  const std::string asked = model.options().recompute;
  const Resolved resolved = resolved_policy(model, shape, /*always=*/false);
  model.recompute(resolved.policy);
  std::string text = "recompute " + resolved.policy.to_string();
  if (resolved.profile.layers.empty()) return text;
  const ActivationForecast found = forecast(resolved.profile, resolved.policy.layers);
  text += " (" + asked + ": a micro-batch of " + shape_text(shape) + " keeps " +
          bytes_text(found.kept_bytes) + " and needs " + bytes_text(found.peak_bytes) + " at most)";
  return text;
}

MemoryForecast memory_forecast(RobertaForMaskedLm& model, const RunConfig& config,
                               const ActivationShape& shape) {
  MemoryForecast result;
  result.shape = shape;
  result.asked = model.options().recompute;
  const Resolved resolved = resolved_policy(model, shape, /*always=*/true);
  result.policy = resolved.policy;
  result.profile = resolved.profile;
  result.activations = forecast(result.profile, result.policy.layers);
  for (const torch::Tensor& parameter : model.parameters()) {
    result.parameter_bytes += static_cast<std::int64_t>(parameter.nbytes());
    result.type = c10::toString(parameter.scalar_type());
    result.device = parameter.device().str();
    result.gradient_bytes += kFloat32Bytes * parameter.numel();
  }
  if (result.parameter_bytes < result.gradient_bytes) result.master_bytes = result.gradient_bytes;
  result.optimizer_bytes = optimizer_state_bytes(model, config);
  if (config.train.ema_decay > 0) result.optimizer_bytes += result.gradient_bytes;
  result.shards = config.train.shard_optimizer;
  return result;
}

std::string memory_table(const MemoryForecast& forecast) {
  const ActivationForecast& activations = forecast.activations;
  TextTable table({"layer", "recompute<", "attention keeps", "ffn keeps", "bytes"});
  for (std::size_t i = 0; i < forecast.policy.layers.size(); ++i) {
    const std::int64_t attention = activations.attention_bytes[i],
                       feed_forward = activations.feed_forward_bytes[i];
    table.add({std::to_string(i), part_of(forecast, i), grouped(attention), grouped(feed_forward),
               grouped(attention + feed_forward)});
  }
  const std::string policy = forecast.policy.to_string();
  std::string text = "a micro-batch of " + shape_text(forecast.shape) + ", " +
                     grouped(forecast.shape.masked) + " of them masked, in " + forecast.type +
                     " on " + forecast.device + ", recompute " + policy;
  if (forecast.asked != policy) text += " (" + forecast.asked + ")";
  text += ", keeps for backward:\n" + table.text();
  text += "embeddings    " + grouped(forecast.profile.embeddings.kept_bytes) + "\n";
  text += "positions     " + grouped(activations.shared_bytes) + ", shared by layers\n";
  if (forecast.profile.mask_decoder_bytes > 0) {
    text += "mask decoder  " + grouped(forecast.profile.mask_decoder_bytes) + "\n";
  }
  text += "head          " + grouped(forecast.profile.head.kept_bytes) + "\n";
  text += "kept          " + with_unit(activations.kept_bytes) + "\n";
  text += "peak          " + with_unit(activations.peak_bytes) + ", about, in backward\n";
  text += "parameters    " + with_unit(forecast.parameter_bytes) + "\n";
  text += "gradients     " + with_unit(forecast.gradient_bytes) + "\n";
  if (forecast.master_bytes > 0) {
    text += "float32 copies " + with_unit(forecast.master_bytes) + "\n";
  }
  text += "optimizer     " + with_unit(forecast.optimizer_bytes) + "\n";
  text += "all           " + with_unit(forecast.peak_bytes()) +
          ", about, per rank, beside data and libraries\n";
  if (forecast.shards != "none") {
    text +=
        "train.shard-optimizer " + forecast.shards + ": of W ranks that share, each holds 1/W of ";
    text += forecast.master_bytes > 0 ? "the float32 copies and the optimizer's state\n"
                                      : "the optimizer's state\n";
  }
  return text;
}

nlohmann::ordered_json memory_json(const MemoryForecast& forecast) {
  const ActivationForecast& activations = forecast.activations;
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < forecast.policy.layers.size(); ++i) {
    layers.push_back({{"layer", i},
                      {"recompute", part_of(forecast, i)},
                      {"attention_bytes", activations.attention_bytes[i]},
                      {"ffn_bytes", activations.feed_forward_bytes[i]}});
  }
  return {{"rows", forecast.shape.rows},
          {"tokens", forecast.shape.tokens},
          {"masked", forecast.shape.masked},
          {"type", forecast.type},
          {"device", forecast.device},
          {"recompute", forecast.policy.to_string()},
          {"layers", layers},
          {"embeddings_bytes", forecast.profile.embeddings.kept_bytes},
          {"positions_bytes", activations.shared_bytes},
          {"mask_decoder_bytes", forecast.profile.mask_decoder_bytes},
          {"head_bytes", forecast.profile.head.kept_bytes},
          {"kept_bytes", activations.kept_bytes},
          {"activation_peak_bytes", activations.peak_bytes},
          {"recomputed_flops", activations.recomputed_flops},
          {"parameter_bytes", forecast.parameter_bytes},
          {"gradient_bytes", forecast.gradient_bytes},
          {"master_bytes", forecast.master_bytes},
          {"optimizer_bytes", forecast.optimizer_bytes},
          {"shard_optimizer", forecast.shards},
          {"peak_bytes", forecast.peak_bytes()}};
}

}  // namespace tupelo
