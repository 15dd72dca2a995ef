#include "model/position/placed_encoding.h"

namespace tupelo {

void PlacedEncoding::to(torch::Device device, torch::Dtype type, bool non_blocking) {
  PositionEncoding::to(device, type, non_blocking);
  device_ = device;
  type_ = type;
}

void PlacedEncoding::to(torch::Dtype type, bool non_blocking) {
  PositionEncoding::to(type, non_blocking);
  type_ = type;
}

void PlacedEncoding::to(torch::Device device, bool non_blocking) {
  PositionEncoding::to(device, non_blocking);
  device_ = device;
}

torch::Dtype PlacedEncoding::wide_type() const {
  return type_ == torch::kHalf || type_ == torch::kBFloat16 ? torch::kFloat32 : type_;
}

}  // namespace tupelo
