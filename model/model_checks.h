// What a model cannot be. Internal to model/; all throw std::invalid_argument that names the option
// at fault and what is valid.
#pragma once

#include <cstdint>

#include "model/position/attention_terms.h"
#include "model/position/input_encoding.h"
#include "model/position/position_plan.h"
#include "model/roberta.h"

namespace tupelo {

void check_sizes(const ModelOptions& options);

// A model without any position information has to be allowed.
void check_some_position(const ModelOptions& options, const InputPosition& input,
                         const PositionPlan& plan);

// Nothing goes with complex hidden states: `scores` of the encoding at the input.
void check_complex(const ModelOptions& options, ComplexScores scores, const PositionPlan& plan);

// Of `logn`, and the N of its formula.
LengthTemperature checked_temperature(const ModelOptions& options);
std::int64_t temperature_length(const ModelOptions& options);

}  // namespace tupelo
