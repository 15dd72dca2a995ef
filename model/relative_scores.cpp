#include "model/relative_scores.h"

#include <algorithm>

namespace tupelo {
namespace {

using torch::Tensor;

constexpr std::int64_t kBlockElements = std::int64_t{1} << 24;

// Samples per block.
std::int64_t block_size(const Tensor& scores) {
  const std::int64_t heads = scores.size(1), tokens = scores.size(2);
  return std::max<std::int64_t>(1, kBlockElements / (heads * tokens * 2 * tokens));
}

template <typename Work>
void over_blocks(const Tensor& scores, const Work& work) {
  const std::int64_t batch = scores.size(0), step = block_size(scores);
  for (std::int64_t first = 0; first < batch; first += step) {
    work(first, std::min(step, batch - first));
  }
}

// The rows of `table` that T tokens can reach.
Tensor reachable(const Tensor& table, std::int64_t tokens) {
  const std::int64_t reach = (table.size(1) - 1) / 2, needed = std::min(reach, tokens - 1);
  return table.narrow(1, reach - needed, 2 * needed + 1);
}

// The [b,N,T,T] matrix inside lines [b,N,T,2T-1] whose entry (i,j) is line i at distance j - i.
Tensor matrix_of(const Tensor& lines) {
  const std::int64_t tokens = lines.size(2), width = lines.size(3);
  return lines.as_strided({lines.size(0), lines.size(1), tokens, tokens},
                          {lines.size(1) * tokens * width, tokens * width, width - 1, 1},
                          tokens - 1);
}

// [b,N,T,U] -> [b,N,T,2T-1], the ends repeated.
Tensor spread(const Tensor& lines, std::int64_t tokens) {
  const std::int64_t width = lines.size(3), beyond = (2 * tokens - 1 - width) / 2;
  if (beyond == 0) {
    return lines.contiguous();
  }
  const auto end = [&](std::int64_t column) {
    return lines.narrow(3, column, 1).expand({-1, -1, -1, beyond});
  };
  return at::cat({end(0), lines, end(width - 1)}, 3);
}

// The transpose of spread: sums what spread repeats.
Tensor gather(const Tensor& lines, std::int64_t width) {
  const std::int64_t beyond = (lines.size(3) - width) / 2;
  if (beyond == 0) {
    return lines;
  }
  Tensor narrow = lines.narrow(3, beyond, width).clone();
  narrow.select(3, 0).add_(lines.narrow(3, 0, beyond).sum(3));
  narrow.select(3, width - 1).add_(lines.narrow(3, beyond + width, beyond).sum(3));
  return narrow;
}

// input table^T, [b,N,T,U].
Tensor times_rows(const Tensor& input, const Tensor& table) {
  return table.size(0) == 1 ? at::matmul(input, table[0].t())
                            : at::matmul(input, table.transpose(1, 2));
}

// Weights [b,N,T,T] summed by distance, [b,N,T,U] for the U rows of `table`, in its type.
Tensor by_distance(const Tensor& weights, const Tensor& table) {
  const std::int64_t tokens = weights.size(2);
  Tensor lines =
      at::zeros({weights.size(0), weights.size(1), tokens, 2 * tokens - 1}, weights.options());
  matrix_of(lines).copy_(weights);
  return gather(lines, table.size(1)).to(table.scalar_type());
}

}  // namespace

void add_relative_scores(Tensor scores, const Tensor& input, const Tensor& table, double factor) {
  const std::int64_t tokens = scores.size(2);
  const Tensor rows = reachable(table, tokens);
  over_blocks(scores, [&](std::int64_t first, std::int64_t count) {
    const Tensor lines = times_rows(input.narrow(0, first, count), rows);
    scores.narrow(0, first, count)
        .add_(matrix_of(spread(lines, tokens).to(scores.scalar_type())), factor);
  });
}

Tensor relative_mixture(const Tensor& weights, const Tensor& table) {
  const Tensor rows = reachable(table, weights.size(2));
  Tensor mixture = at::empty({weights.size(0), weights.size(1), weights.size(2), table.size(2)},
                             table.options());
  over_blocks(weights, [&](std::int64_t first, std::int64_t count) {
    const Tensor lines = by_distance(weights.narrow(0, first, count), rows);
    mixture.narrow(0, first, count)
        .copy_(rows.size(0) == 1 ? at::matmul(lines, rows[0]) : at::matmul(lines, rows));
  });
  return mixture;
}

Tensor relative_table_gradient(const Tensor& weights, const Tensor& input, const Tensor& table) {
  Tensor gradient = at::zeros_like(table);
  const Tensor rows = reachable(gradient, weights.size(2));  // a view
  over_blocks(weights, [&](std::int64_t first, std::int64_t count) {
    const Tensor lines = by_distance(weights.narrow(0, first, count), rows);
    const Tensor part = input.narrow(0, first, count);
    if (rows.size(0) == 1) {
      rows[0].add_(at::mm(lines.flatten(0, 2).t(), part.reshape({-1, part.size(3)})));
    } else {
      rows.add_(at::matmul(lines.transpose(2, 3), part).sum(0));
    }
  });
  return gradient;
}

}  // namespace tupelo
