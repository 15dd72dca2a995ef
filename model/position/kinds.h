// One function per attention encoding; position_encoding.cpp lists them. Each hides its class in
// its own source.
#pragma once

#include "model/position/position_encoding.h"

namespace tupelo {

PositionEncodingKind tupe_absolute_kind();
PositionEncodingKind tupe_relative_kind();
PositionEncodingKind tupe_full_kind();

// For implementations: throws std::invalid_argument when `tokens` exceeds `covered` (names both).
void check_covered(const std::string& encoding, std::int64_t tokens, std::int64_t covered);

// For implementations: biases and their products are float32 or wider, whatever the parameters are.
torch::Tensor at_least_float32(const torch::Tensor& tensor);

}  // namespace tupelo
