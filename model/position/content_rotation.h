// Rotated contents beside a position part of its own: RoPE's angles for q and k of another
// encoding.
#pragma once

#include <cstdint>
#include <memory>

#include "model/position/option_reader.h"
#include "model/position/position_encoding.h"

namespace tupelo {

class ContentRotation {
 public:
  // "content=plain|rope"
  static PositionOptionKind option();

  // Throws std::invalid_argument when heads of this width cannot be rotated. Registers a module
  // without parameters with `owner`.
  ContentRotation(torch::nn::Module& owner, const PositionContext& context,
                  const OptionReader& options);

  // With content=rope: interleaved pairs of q and k turn, base 10000, scaled as the context says.
  void add_to(AttentionTerms& terms, std::int64_t tokens) const;

 private:
  std::shared_ptr<PositionEncoding> rope_;  // nullptr for plain
};

}  // namespace tupelo
