// Rows of similar length together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/document_table.h"
#include "data/row_index.h"
#include "data/row_plan.h"

namespace tupelo {

// The rows of a plan of packing kDocument by ranges of their lengths, "bins", shortest first. The
// ranges are those with which the least is padded when each row gets as long as its bin's longest,
// among those that begin at one of 512 lengths and hold at least 1/1024 of the rows. For sentence
// pairs a row's length is that of its place. A pure function of the document lengths; reads them as
// RowPlan does. Any thread may call const members.
class LengthBins {
 public:
  // At most `bins` >= 1 of them, fewer where more would not help. `tables`: of an equal plan.
  LengthBins(std::shared_ptr<const DocumentTable> documents, const RowPlan& plan, std::size_t bins,
             const PlanTables* tables = nullptr);

  std::size_t count() const { return longest_.size(); }
  std::uint64_t rows(std::size_t bin) const { return first_rows_[bin].back(); }
  // Tokens of the bin's longest row, without special ones.
  std::uint64_t longest(std::size_t bin) const { return longest_[bin]; }
  // The plan's number of row `index` < rows(bin) of a bin.
  std::uint64_t row(std::size_t bin, std::uint64_t index) const;

  // Writes its part of the tables of the plan.
  void add_to(PlanTables& tables) const;

 private:
  std::vector<std::uint64_t> count_rows(const DocumentTable& documents, std::size_t bins);
  std::size_t bin_of(std::uint64_t tokens) const;

  DocumentCut cut_;
  std::vector<std::uint64_t> longest_;
  std::optional<RowIndex> index_;
  std::vector<std::vector<std::uint64_t>> first_rows_;  // [bin][part], and the end: of the bin
  std::vector<std::uint64_t> plan_rows_;                // [part]: the first row of the plan
};

}  // namespace tupelo
