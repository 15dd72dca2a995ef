// One function per encoding; position_encoding.cpp and input_encoding.cpp list them. Each hides its
// class in its own source.
#pragma once

#include <string>

#include "model/position/input_encoding.h"
#include "model/position/position_encoding.h"

namespace tupelo {

PositionEncodingKind alibi_kind();
PositionEncodingKind convolution_kind();
PositionEncodingKind deberta_kind();
PositionEncodingKind deberta_v2_kind();
PositionEncodingKind floater_kind();
PositionEncodingKind nezha_kind();
PositionEncodingKind rope_kind();
PositionEncodingKind shaw_kind();
PositionEncodingKind t5_kind();
PositionEncodingKind tupe_absolute_kind();
PositionEncodingKind tupe_relative_kind();
PositionEncodingKind tupe_full_kind();
PositionEncodingKind xlnet_kind();

InputEncodingKind complex_order_input_kind();
InputEncodingKind convolution_input_kind();
InputEncodingKind floater_input_kind();
InputEncodingKind hierarchical_input_kind();
InputEncodingKind learned_input_kind();
InputEncodingKind recursive_input_kind();
InputEncodingKind sinusoidal_input_kind();

// For implementations: how messages about options name an encoding at the input.
std::string input_owner(const std::string& encoding);

// For implementations: throws std::invalid_argument when `tokens` exceeds `covered` (names both).
void check_covered(const std::string& encoding, std::int64_t tokens, std::int64_t covered);

// For implementations: biases and their products are float32 or wider, whatever the parameters are.
torch::Tensor at_least_float32(const torch::Tensor& tensor);

}  // namespace tupelo
