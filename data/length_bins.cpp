#include "data/length_bins.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace tupelo {
namespace {

constexpr std::uint64_t kMostCells = 512;
constexpr std::uint64_t kLeastShare = 1024;  // of the rows, as its inverse
constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

// Lengths 1 to `longest` in cells of about the same width.
struct Cells {
  std::uint64_t longest;
  std::uint64_t count = std::min(longest, kMostCells);

  std::uint64_t of(std::uint64_t tokens) const { return (tokens * count - 1) / longest; }
  // The longest row of a cell.
  std::uint64_t top(std::uint64_t cell) const { return (cell + 1) * longest / count; }
};

// Where to cut cells 0 to rows.size() - 1: the ends of at most `bins` stretches with the least sum
// of rows x longest row. Each has at least `least` rows and ends with a cell that has some.
class BestCuts {
 public:
  BestCuts(const std::vector<std::uint64_t>& rows, const Cells& cells, std::uint64_t least)
      : cells_(cells), least_(least), before_(rows.size() + 1) {
    std::partial_sum(rows.begin(), rows.end(), before_.begin() + 1);
  }

  std::vector<std::uint64_t> ends(std::size_t bins) {
    const std::size_t size = before_.size();
    std::vector<std::vector<std::size_t>> from;  // [bins - 1][end]: where the last one begins
    std::vector<std::uint64_t> cost(size, kNone), next;
    cost[0] = 0;
    std::uint64_t best = kNone;
    std::size_t best_count = 0;
    for (std::size_t count = 1; count <= bins; ++count) {
      next.assign(size, kNone);
      from.emplace_back(size);
      for (std::size_t end = 1; end < size; ++end) extend(cost, end, next[end], from.back()[end]);
      cost.swap(next);
      if (cost.back() < best) {
        best = cost.back();
        best_count = count;
      }
    }
    std::vector<std::uint64_t> ends;
    for (std::size_t end = size - 1; best_count > 0; --best_count) {
      ends.push_back(end);
      end = from[best_count - 1][end];
    }
    std::reverse(ends.begin(), ends.end());
    return ends;
  }

 private:
  void extend(const std::vector<std::uint64_t>& cost, std::size_t end, std::uint64_t& least_cost,
              std::size_t& from) const {
    const bool last = end + 1 == before_.size();
    if (!last && before_[end] == before_[end - 1]) return;
    for (std::size_t begin = 0; begin < end && before_[end] - before_[begin] >= least_; ++begin) {
      if (cost[begin] == kNone) continue;
      const std::uint64_t added = (before_[end] - before_[begin]) * cells_.top(end - 1);
      if (cost[begin] + added >= least_cost) continue;
      least_cost = cost[begin] + added;
      from = begin;
    }
  }

  const Cells& cells_;
  std::uint64_t least_;
  std::vector<std::uint64_t> before_;  // rows in the cells before
};

// All rows of a document but the last are of `cut.step` tokens.
template <typename Add>
void for_rows(const DocumentCut& cut, std::uint64_t length, Add add) {
  const std::uint64_t rows = cut.rows(length);
  if (rows > 1) add(cut.step, rows - 1);
  if (rows > 0) add(cut.last(length), std::uint64_t{1});
}

}  // namespace

LengthBins::LengthBins(std::shared_ptr<const DocumentTable> documents, const RowPlan& plan,
                       std::size_t bins, const PlanTables* tables)
    : cut_(plan.cut()) {
  const std::size_t parts = documents->parts().size();
  std::vector<std::uint64_t> rows;  // [part * count() + bin]
  if (tables != nullptr) {
    longest_ = tables->bin_longest;
    rows = tables->bin_rows;
  } else {
    rows = count_rows(*documents, bins);
  }
  first_rows_.assign(count(), {0});
  plan_rows_.push_back(0);
  for (std::size_t part = 0; part < parts; ++part) {
    std::uint64_t of_part = 0;
    for (std::size_t bin = 0; bin < count(); ++bin) {
      const std::uint64_t of_bin = rows.at(part * count() + bin);
      first_rows_[bin].push_back(first_rows_[bin].back() + of_bin);
      of_part += of_bin;
    }
    plan_rows_.push_back(plan_rows_.back() + of_part);
  }
  // Shares nothing with *this, which may move.
  index_.emplace(
      std::move(documents), count(),
      [cut = cut_, longest = longest_](std::uint64_t length, std::span<std::uint64_t> of_bins) {
        for_rows(cut, length, [&](std::uint64_t tokens, std::uint64_t added) {
          const auto bin = std::lower_bound(longest.begin(), longest.end(), tokens);
          of_bins[static_cast<std::size_t>(bin - longest.begin())] += added;
        });
      });
}

// Chooses the bins and returns the rows of each part in each.
std::vector<std::uint64_t> LengthBins::count_rows(const DocumentTable& documents,
                                                  std::size_t bins) {
  const Cells cells{cut_.content};
  const std::size_t parts = documents.parts().size();
  std::vector<std::uint64_t> by_part(parts * cells.count), all(cells.count);
  for (std::size_t part = 0; part < parts; ++part) {
    std::uint64_t begin = 0;
    for (std::uint64_t d = 0; d < documents.parts()[part].documents; ++d) {
      const std::uint64_t end = documents.offset(part, d + 1);
      for_rows(cut_, end - begin, [&](std::uint64_t tokens, std::uint64_t added) {
        by_part[part * cells.count + cells.of(tokens)] += added;
        all[cells.of(tokens)] += added;
      });
      begin = end;
    }
  }
  const std::uint64_t total = std::accumulate(all.begin(), all.end(), std::uint64_t{0});
  if (total == 0) return {};
  const std::vector<std::uint64_t> ends =
      BestCuts(all, cells, (total + kLeastShare - 1) / kLeastShare).ends(bins);
  std::vector<std::uint64_t> rows;
  for (const std::uint64_t end : ends) longest_.push_back(cells.top(end - 1));
  for (std::size_t part = 0; part < parts; ++part) {
    const auto of_part = by_part.begin() + static_cast<std::ptrdiff_t>(part * cells.count);
    std::uint64_t begin = 0;
    for (const std::uint64_t end : ends) {
      rows.push_back(std::accumulate(of_part + static_cast<std::ptrdiff_t>(begin),
                                     of_part + static_cast<std::ptrdiff_t>(end), std::uint64_t{0}));
      begin = end;
    }
  }
  return rows;
}

std::size_t LengthBins::bin_of(std::uint64_t tokens) const {
  const auto bin = std::lower_bound(longest_.begin(), longest_.end(), tokens);
  return static_cast<std::size_t>(bin - longest_.begin());
}

std::uint64_t LengthBins::row(std::size_t bin, std::uint64_t index) const {
  const std::vector<std::uint64_t>& first = first_rows_[bin];
  const auto after = std::upper_bound(first.begin(), first.end(), index);
  const std::size_t part = static_cast<std::size_t>(after - first.begin()) - 1;
  const RowIndex::Found found = index_->find(part, bin, index - first[part]);
  const bool whole = found.rows > 1 && bin_of(cut_.step) == bin;
  const std::uint64_t within = whole ? found.row : found.rows - 1;
  return plan_rows_[part] + found.before + within;
}

void LengthBins::add_to(PlanTables& tables) const {
  tables.bin_longest = longest_;
  tables.bin_rows.clear();
  for (std::size_t part = 0; part + 1 < plan_rows_.size(); ++part) {
    for (const std::vector<std::uint64_t>& first : first_rows_) {
      tables.bin_rows.push_back(first[part + 1] - first[part]);
    }
  }
}

}  // namespace tupelo
