#include "model/position/length_extension.h"

#include <algorithm>
#include <stdexcept>

#include "model/position/kinds.h"
#include "model/position/spelling.h"

namespace tupelo {
namespace {

using torch::Tensor;

// Look-ups, unlike index_select, sum their gradients without atomics.
Tensor rows_at(const Tensor& table, const std::vector<std::int64_t>& rows) {
  const auto indices = torch::tensor(rows, torch::kInt64).to(table.device());
  return at::embedding(table, indices);
}

// One vector of row numbers per new row, by `source`.
template <typename Source>
std::vector<std::int64_t> row_numbers(std::int64_t count, Source source) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  for (std::int64_t row = 0; row < count; ++row) {
    rows[static_cast<std::size_t>(row)] = source(row);
  }
  return rows;
}

// Row k of the result is `table` at numerator * k / denominator, linear between its rows and
// constant after the last.
Tensor sampled(const Tensor& table, std::int64_t count, std::int64_t numerator,
               std::int64_t denominator) {
  const std::int64_t last = table.size(0) - 1;
  std::vector<double> weights(static_cast<std::size_t>(count));
  for (std::int64_t row = 0; row < count; ++row) {
    weights[static_cast<std::size_t>(row)] =
        static_cast<double>(row * numerator % denominator) / static_cast<double>(denominator);
  }
  const auto below = [&](std::int64_t row) {
    return std::min(row * numerator / denominator, last);
  };
  const auto above = [&](std::int64_t row) { return std::min(below(row) + 1, last); };
  const Tensor weight =
      torch::tensor(weights, torch::kFloat64).to(table.options().requires_grad(false));
  return at::lerp(rows_at(table, row_numbers(count, below)),
                  rows_at(table, row_numbers(count, above)), weight.unsqueeze(1));
}

Tensor aligned(const Tensor& table, std::int64_t count) {
  return sampled(table, count, table.size(0) - 1, count - 1);
}

Tensor scaled(const Tensor& table, std::int64_t count) {
  return sampled(table, count, table.size(0), count);
}

Tensor hierarchical(const Tensor& table, std::int64_t count, double alpha) {
  check_hierarchical_alpha("length extension hier", alpha);
  const std::int64_t base = table.size(0);
  const Tensor units = (table - alpha * table.narrow(0, 0, 1)) / (1.0 - alpha);
  const auto major = row_numbers(count, [&](std::int64_t row) { return row / base; });
  const auto minor = row_numbers(count, [&](std::int64_t row) { return row % base; });
  return alpha * rows_at(units, major) + (1.0 - alpha) * rows_at(units, minor);
}

Tensor repeated(const Tensor& table, std::int64_t count) {
  return rows_at(table, row_numbers(count, [&](std::int64_t row) { return row % table.size(0); }));
}

Tensor extended(const Tensor& table, std::int64_t count, const LengthExtension& extension) {
  switch (extension.tables) {
    case TableExtension::kAlign:
      return aligned(table, count);
    case TableExtension::kScale:
      return scaled(table, count);
    case TableExtension::kHierarchical:
      return hierarchical(table, count, extension.hierarchical_alpha);
    case TableExtension::kCopy:
      return repeated(table, count);
    case TableExtension::kError:
      break;
  }
  throw std::logic_error("a table that is not extended has no more rows");
}

}  // namespace

const std::vector<std::string>& table_extension_names() {
  static const std::vector<std::string> names = {"error", "align", "scale", "hier", "copy"};
  return names;
}

TableExtension parse_table_extension(const std::string& name) {
  const auto& names = table_extension_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw std::invalid_argument("unknown extension of position tables '" + name + "'" +
                                spelling_hint(name, names) + "; valid: " + comma_separated(names));
  }
  return static_cast<TableExtension>(found - names.begin());
}

std::int64_t extended_length(std::int64_t positions, const LengthExtension& extension) {
  if (positions == 0 || extension.tables == TableExtension::kError) {
    return positions;
  }
  return extension.tables == TableExtension::kHierarchical ? positions * positions : kAnyLength;
}

void check_hierarchical_alpha(const std::string& owner, double alpha) {
  if (!(alpha > 0.0 && alpha < 1.0) || alpha == 0.5) {
    throw std::invalid_argument(owner + ": alpha=" + std::to_string(alpha) +
                                " must lie between 0 and 1 and differ from 0.5, which would"
                                " confuse positions");
  }
}

Tensor extended_table(const Tensor& table, std::int64_t kept, std::int64_t new_rows,
                      const LengthExtension& extension) {
  if (new_rows <= table.size(0)) {
    return table.narrow(0, 0, new_rows);
  }
  const std::int64_t trained = table.size(0) - kept, wanted = new_rows - kept;
  TORCH_CHECK(kept >= 0 && trained >= 0, "a table of ", table.size(0), " rows cannot keep ", kept);
  const std::int64_t reached = extended_length(trained, extension);
  if (wanted > reached) {
    throw std::invalid_argument(std::string("position table: ") + std::to_string(wanted) +
                                " positions are more than the " + std::to_string(reached) +
                                " that its length extension reaches");
  }
  // Interpolated in float32 or wider.
  const Tensor rows = at_least_float32(table.narrow(0, kept, trained));
  return at::cat(
      {table.narrow(0, 0, kept), extended(rows, wanted, extension).to(table.scalar_type())}, 0);
}

}  // namespace tupelo
