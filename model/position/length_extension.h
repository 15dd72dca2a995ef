// Sequences longer than a model was trained for.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tupelo {

inline constexpr std::int64_t kAnyLength = std::numeric_limits<std::int64_t>::max();

// What a table of N positions says about more than N.
enum class TableExtension {
  kError,         // nothing: a longer sequence is refused
  kAlign,         // the rows stretched linearly, both ends kept
  kScale,         // row k is sampled at min(k * N / new, N - 1) (position interpolation)
  kHierarchical,  // u_r = (p_r - a p_0) / (1 - a); row aN + b is a u_a + (1 - a) u_b; at most N^2
  kCopy           // the rows repeated from the start (Longformer)
};

// Frequencies of a rotation beyond the trained length (docs/positions.md, rope).
struct RotationScaling {
  // none | pi | ntk | ntk-dynamic | ntk-fixed | ntk-mixed | yarn | yarn-notrunc; "" leaves each
  // encoding its own.
  std::string method;
  double factor = 0.0;  // s; 0: the sequence's length / the trained length
};

// Rules for sequences of more than PositionContext::max_positions tokens. They change nothing, not
// a bit, for shorter ones.
struct LengthExtension {
  TableExtension tables = TableExtension::kError;
  double hierarchical_alpha = 0.4;  // in (0,1), not 1/2
  RotationScaling rotation;
};

// "error", "align", "scale", "hier", "copy". Throws std::invalid_argument with the nearest name.
TableExtension parse_table_extension(const std::string& name);
const std::vector<std::string>& table_extension_names();

// The most positions that a table of N offers: N, N^2, or kAnyLength.
std::int64_t extended_length(std::int64_t positions, const LengthExtension& extension);

// Throws std::invalid_argument that names `owner` unless alpha is in (0,1) and not 1/2.
void check_hierarchical_alpha(const std::string& owner, double alpha);

// [new_rows,W]: `table` [kept+N,W], its first `kept` rows as they are and the N others extended to
// new_rows - kept; the first new_rows rows, a view, when the table has that many.
// Differentiable. Throws std::invalid_argument for kError and for kHierarchical beyond N^2 rows.
torch::Tensor extended_table(const torch::Tensor& table, std::int64_t kept, std::int64_t new_rows,
                             const LengthExtension& extension);

}  // namespace tupelo
