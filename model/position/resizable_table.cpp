#include "model/position/resizable_table.h"

#include <stdexcept>

namespace tupelo {
namespace {

using torch::Tensor;

// Distances lie around the middle of the table.
Tensor with_distances(const Tensor& table, std::int64_t new_rows) {
  const std::int64_t old_rows = table.size(0), width = table.size(1);
  TORCH_CHECK((new_rows - old_rows) % 2 == 0, "a table of distances changes at both ends");
  const std::int64_t more = (new_rows - old_rows) / 2;
  if (more <= 0) {
    return table.narrow(0, -more, new_rows).clone();
  }
  return at::cat({table.narrow(0, 0, 1).expand({more, width}), table,
                  table.narrow(0, old_rows - 1, 1).expand({more, width})},
                 0);
}

}  // namespace

Tensor resized_table(const Tensor& table, const ResizableTable& description, std::int64_t new_rows,
                     const LengthExtension& extension) {
  const torch::NoGradGuard no_gradients;
  if (description.rows == ResizableTable::Rows::kDistances) {
    return with_distances(table, new_rows);
  }
  const std::int64_t old_rows = table.size(0);
  if (new_rows <= description.kept) {
    throw std::invalid_argument("position table: " + std::to_string(new_rows) +
                                " rows would leave no position");
  }
  const Tensor rows = extended_table(table, description.kept, new_rows, extension);
  const bool exact = extension.tables == TableExtension::kHierarchical ||
                     extension.tables == TableExtension::kCopy;
  if (new_rows <= old_rows || !exact) {
    return rows.clone();
  }
  // What hier gives for the old positions is theirs up to rounding only.
  return at::cat({table, rows.narrow(0, old_rows, new_rows - old_rows)}, 0);
}

}  // namespace tupelo
