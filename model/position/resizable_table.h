// Position tables of a model that gets another number of positions.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "model/position/length_extension.h"

namespace tupelo {

// A parameter with as many rows as max_positions says.
struct ResizableTable {
  enum class Rows {
    kPositions,  // position 0, 1, 2, ... after the rows kept
    kDistances   // every distance to both sides; farther ones use the end rows
  };
  std::string parameter;  // relative to the encoding
  Rows rows = Rows::kPositions;
  std::int64_t kept = 0;  // rows in front that an extension leaves alone
};

// A tensor of its own with new_rows rows. Fewer positions are the first ones; more come from the
// extension, which kHierarchical and kCopy leave the old ones bit for bit. Distances keep their
// values, new ones get those of the end rows, and those too far to be left go. Throws
// std::invalid_argument as extended_table() does, and when nothing but the rows kept would be left.
torch::Tensor resized_table(const torch::Tensor& table, const ResizableTable& description,
                            std::int64_t new_rows, const LengthExtension& extension);

}  // namespace tupelo
