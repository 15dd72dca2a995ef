// How much memory a training run needs, and the recompute policy that follows from a budget.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "launcher/run_config.h"
#include "model/activation_probe.h"

namespace tupelo {

// The largest micro-batch of the run: train.micro-batch rows of the longest length of the ramp, or
// of `tokens` tokens when that is not 0.
ActivationShape micro_batch_shape(const RunConfig& config, std::int64_t tokens = 0);

// Puts the choice of a policy auto:BYTES into effect in the model, which is on its device and not
// yet trained; a policy without a budget stays as it is. Returns the sentence for the start of a
// run. The same on every rank with the same configuration and the same kind of device. Throws
// std::invalid_argument when not even recompute=full fits.
std::string resolve_recompute(RobertaForMaskedLm& model, const RunConfig& config);

struct MemoryForecast {
  ActivationShape shape;
  std::string type, device;  // "float32", "cpu"
  RecomputePolicy policy;    // resolved
  std::string asked;         // as the user wrote it
  ActivationProfile profile;
  ActivationForecast activations;
  std::int64_t parameter_bytes = 0, gradient_bytes = 0;  // per rank
  // Float32 masters of 16-bit parameters, and the optimizer's state with the average of the
  // weights: per rank too, or of all ranks that train.shard-optimizer lets share them.
  std::int64_t master_bytes = 0, optimizer_bytes = 0;
  std::string shards;  // train.shard-optimizer

  std::int64_t peak_bytes() const {
    return parameter_bytes + gradient_bytes + master_bytes + optimizer_bytes +
           activations.peak_bytes;
  }
};

// Of a run with these settings whose micro-batches have that shape. Throws as resolve_recompute().
MemoryForecast memory_forecast(RobertaForMaskedLm& model, const RunConfig& config,
                               const ActivationShape& shape);
std::string memory_table(const MemoryForecast& forecast);
nlohmann::ordered_json memory_json(const MemoryForecast& forecast);

}  // namespace tupelo
