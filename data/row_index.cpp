#include "data/row_index.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace tupelo {
namespace {

// A search walks over less than a stride of documents.
constexpr std::uint64_t kLeastStride = 64;

}  // namespace

struct RowIndex::Slots {
  struct Slot {
    std::unique_ptr<const Samples> owned;
    std::atomic<const Samples*> made = nullptr;
  };
  std::mutex making;
  std::vector<Slot> slots;
};

RowIndex::RowIndex(std::shared_ptr<const DocumentTable> documents, std::size_t classes,
                   AddRows add_rows)
    : documents_(std::move(documents)),
      classes_(classes),
      add_rows_(std::move(add_rows)),
      stride_(std::max<std::uint64_t>(kLeastStride, sizeof(std::uint64_t) * classes)),
      slots_(std::make_unique<Slots>()) {
  slots_->slots = std::vector<Slots::Slot>(documents_->parts().size());
}

RowIndex::~RowIndex() = default;
RowIndex::RowIndex(RowIndex&&) noexcept = default;
RowIndex& RowIndex::operator=(RowIndex&&) noexcept = default;

std::vector<std::uint64_t> RowIndex::count(std::size_t part) const {
  std::vector<std::uint64_t> rows(classes_);
  std::uint64_t begin = 0;
  for (std::uint64_t d = 0; d < documents_->parts()[part].documents; ++d) {
    const std::uint64_t end = documents_->offset(part, d + 1);
    add_rows_(end - begin, rows);
    begin = end;
  }
  return rows;
}

RowIndex::Samples RowIndex::sample(std::size_t part) const {
  const std::uint64_t documents = documents_->parts()[part].documents;
  Samples samples;
  samples.reserve((documents / stride_ + 1) * classes_);
  std::vector<std::uint64_t> rows(classes_);
  std::uint64_t begin = 0;
  for (std::uint64_t d = 0; d < documents; ++d) {
    if (d % stride_ == 0) samples.insert(samples.end(), rows.begin(), rows.end());
    const std::uint64_t end = documents_->offset(part, d + 1);
    add_rows_(end - begin, rows);
    begin = end;
  }
  return samples;
}

const RowIndex::Samples& RowIndex::samples(std::size_t part) const {
  Slots::Slot& slot = slots_->slots[part];
  if (const Samples* made = slot.made.load(std::memory_order_acquire)) return *made;
  const std::lock_guard lock(slots_->making);
  if (!slot.owned) {
    slot.owned = std::make_unique<const Samples>(sample(part));
    slot.made.store(slot.owned.get(), std::memory_order_release);
  }
  return *slot.owned;
}

RowIndex::Found RowIndex::find(std::size_t part, std::size_t row_class, std::uint64_t row) const {
  const Samples& known = samples(part);
  // The last sample with no more than `row` rows of the class before it.
  std::uint64_t first = 0, end = known.size() / classes_;
  while (end - first > 1) {
    const std::uint64_t middle = (first + end) / 2;
    (known[middle * classes_ + row_class] <= row ? first : end) = middle;
  }
  const auto at = known.begin() + static_cast<std::ptrdiff_t>(first * classes_);
  std::vector<std::uint64_t> rows(at, at + static_cast<std::ptrdiff_t>(classes_));
  const std::uint64_t documents = documents_->parts()[part].documents;
  for (std::uint64_t d = first * stride_; d < documents; ++d) {
    const std::uint64_t of_class = rows[row_class];
    const std::uint64_t before = std::accumulate(rows.begin(), rows.end(), std::uint64_t{0});
    add_rows_(documents_->length(part, d), rows);
    if (rows[row_class] <= row) continue;
    const std::uint64_t after = std::accumulate(rows.begin(), rows.end(), std::uint64_t{0});
    return {d, row - of_class, after - before, before};
  }
  throw std::out_of_range("a part has fewer rows than its table says");
}

}  // namespace tupelo
