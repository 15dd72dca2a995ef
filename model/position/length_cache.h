// The constant tensor of the latest length.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace tupelo {

// Not a registered buffer: a table that depends on settings and a length alone belongs in no
// checkpoint, and casting the module must not round it.
class LengthCache {
 public:
  // compute(), which depends on `length` and on what never changes, moved to `device` and `type`;
  // kept until one of the three differs.
  template <typename Compute>
  const torch::Tensor& get(std::int64_t length, torch::Device device, torch::Dtype type,
                           const Compute& compute) {
    if (length != length_ || device != device_ || type != type_) {
      torch::NoGradGuard no_grad;
      latest_ = compute().to(device, type);
      length_ = length;
      device_ = device;
      type_ = type;
    }
    return latest_;
  }

 private:
  std::int64_t length_ = -1;
  torch::Device device_ = torch::kCPU;
  torch::Dtype type_ = torch::kFloat32;
  torch::Tensor latest_;
};

}  // namespace tupelo
