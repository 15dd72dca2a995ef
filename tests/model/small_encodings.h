// Encodings of small tables, for tests.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "model/position/position_encoding.h"

namespace tupelo {

inline constexpr std::int64_t kHeads = 3, kWidth = 4, kLongest = 9;

inline PositionContext context_of(std::int64_t heads = kHeads, std::int64_t width = kWidth) {
  PositionContext context;
  context.heads = heads;
  context.head_width = width;
  context.max_positions = kLongest;
  return context;
}

// In float64, with random parameters.
inline std::shared_ptr<PositionEncoding> make(const std::string& name,
                                              const PositionOptions& options = {},
                                              const PositionContext& context = context_of()) {
  const auto encoding = make_position_encoding(name, context, options);
  encoding->initialize(0.3, at::make_generator<at::CPUGeneratorImpl>(11));
  encoding->to(torch::kFloat64);
  return encoding;
}

inline torch::Tensor random_heads(std::int64_t tokens) {
  return torch::randn({2, kHeads, tokens, kWidth}, torch::kFloat64);
}

}  // namespace tupelo
