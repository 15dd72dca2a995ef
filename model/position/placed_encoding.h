// For encodings that may be without parameters to read the model's device and type off.
#pragma once

#include <torch/types.h>

#include "model/position/position_encoding.h"

namespace tupelo {

// Remembers what the model was last moved to.
class PlacedEncoding : public PositionEncoding {
 public:
  void to(torch::Device device, torch::Dtype type, bool non_blocking = false) override;
  void to(torch::Dtype type, bool non_blocking = false) override;
  void to(torch::Device device, bool non_blocking = false) override;

 protected:
  torch::Device device() const { return device_; }
  // The model's type, but float32 for half precision.
  torch::Dtype wide_type() const;

 private:
  torch::Device device_ = torch::kCPU;
  torch::Dtype type_ = torch::kFloat32;
};

}  // namespace tupelo
