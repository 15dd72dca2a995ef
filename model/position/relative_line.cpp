#include "model/position/relative_line.h"

#include <algorithm>
#include <vector>

namespace tupelo {

T5RelativeLine::T5RelativeLine(std::int64_t buckets, std::int64_t max_distance)
    : buckets_(buckets, max_distance) {}

torch::Tensor T5RelativeLine::operator()(const torch::Tensor& table, std::int64_t tokens) {
  const std::int64_t distances = 2 * tokens - 1;
  const torch::Tensor selector = selectors_.get(tokens, table.device(), table.scalar_type(), [&] {
    const std::vector<std::int64_t> line = buckets_.line(tokens);
    const torch::Tensor indices = torch::tensor(line, torch::kInt64).unsqueeze(1);
    return torch::zeros({distances, table.size(0)}, torch::kFloat32).scatter_(1, indices, 1.0);
  });
  // A product with a one-hot matrix copies exactly, and its backward adds without atomics, unlike
  // that of a look-up with many equal indices.
  return at::matmul(selector, table).t();
}

torch::Tensor clipped_line(const torch::Tensor& table, std::int64_t tokens) {
  const std::int64_t reach = (table.size(0) + 1) / 2;
  const std::int64_t near = std::min(tokens, reach);
  const torch::Tensor middle = table.narrow(0, reach - near, 2 * near - 1);
  if (near == tokens) {
    return middle.t();
  }
  const std::int64_t beyond = tokens - near, heads = table.size(1);
  const torch::Tensor first = table.narrow(0, 0, 1).expand({beyond, heads});
  const torch::Tensor last = table.narrow(0, table.size(0) - 1, 1).expand({beyond, heads});
  return at::cat({first, middle, last}, 0).t();
}

}  // namespace tupelo
