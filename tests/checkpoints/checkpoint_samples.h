// Small checkpoints whose content follows from their step.
#pragma once

#include <torch/types.h>

#include <cstring>
#include <string>

#include "checkpoints/checkpoint_store.h"

namespace tupelo {

inline bool same_bits(const torch::Tensor& left, const torch::Tensor& right) {
  return left.sizes() == right.sizes() && left.scalar_type() == right.scalar_type() &&
         (left.nbytes() == 0 ||
          std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0);
}

// `variant` tells saves of one step apart.
inline Checkpoint sample_checkpoint(std::int64_t step, std::int64_t elements = 12,
                                    std::int64_t variant = 0) {
  const auto value = static_cast<double>(1000 * step + variant);
  Checkpoint checkpoint;
  checkpoint.step = step;
  checkpoint.files["model"] = {{"weight", torch::arange(elements).to(torch::kFloat32) + value},
                               {"bias", torch::full({5}, value, torch::kFloat64)}};
  checkpoint.files["optimizer"] = {{"exp_avg.weight", torch::full({elements}, value)}};
  checkpoint.state_json = "{\"step\": " + std::to_string(step) +
                          ", \"variant\": " + std::to_string(variant) + ", \"loss\": 2.5}";
  return checkpoint;
}

// Whether `loaded` holds exactly what `saved` does, in the order of names.
inline bool same_content(const Checkpoint& loaded, const Checkpoint& saved) {
  if (loaded.step != saved.step || loaded.state_json != saved.state_json ||
      loaded.files.size() != saved.files.size()) {
    return false;
  }
  for (const auto& [stem, tensors] : saved.files) {
    const auto found = loaded.files.find(stem);
    if (found == loaded.files.end() || found->second.size() != tensors.size()) return false;
    for (const auto& [name, tensor] : tensors) {
      bool equal = false;
      for (const auto& [other, value] : found->second) {
        equal = equal || (other == name && same_bits(value, tensor.contiguous()));
      }
      if (!equal) return false;
    }
  }
  return true;
}

}  // namespace tupelo
