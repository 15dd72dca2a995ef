#include "data/import/nvidia_rows.h"

#include <algorithm>

#include "data/import/nvidia.h"

namespace tupelo {
namespace {

constexpr const char* kIds = "input_ids";
constexpr const char* kMask = "input_mask";
constexpr const char* kPositions = "masked_lm_positions";
constexpr const char* kMaskedIds = "masked_lm_ids";
constexpr const char* kLabels = "next_sentence_labels";
// Datasets of layouts in which one row holds several sequences, whose positions count otherwise.
constexpr const char* kPacked[] = {"packed_input_len", "packed_masked_lm_len",
                                   "next_sentence_positions"};

}  // namespace

void read_nvidia_structure(const std::filesystem::path& file) {
  const Hdf5Arrays arrays(file);
  for (const char* name : {kIds, kMask, kPositions, kMaskedIds, kLabels}) {
    if (!arrays.has(name)) continue;
    const StoredArray array = arrays.array(name);
    if (array.chunk_rows == 0) continue;
    for (std::uint64_t row = 0; row < array.rows; row += array.chunk_rows) {
      for (std::uint64_t column = 0; column < array.columns; column += array.chunk_columns) {
        arrays.chunk(name, row, column);
      }
    }
  }
}

NvidiaRows::NvidiaRows(const std::filesystem::path& file, const Tokenizer& tokenizer)
    : arrays_(file), file_(file), tokenizer_(tokenizer) {
  for (const char* name : kPacked) {
    if (!arrays_.has(name)) continue;
    throw CorpusError(file.string() + ": dataset '" + name +
                      "' says that rows hold several packed sequences; only unpacked ones are "
                      "imported");
  }
  ids_ = open(kIds);
  positions_ = open(kPositions);
  masked_ids_ = open(kMaskedIds);
  if (!varying_ && arrays_.has(kMask)) mask_ = open(kMask);
  if (arrays_.has(kLabels)) labels_ = open(kLabels);
}

std::unique_ptr<NumberRows> NvidiaRows::open(const std::string& name) {
  const StoredArray array = arrays_.array(name);
  if (name == kIds) {
    rows_ = array.rows;
    varying_ = array.varying();
  }
  if (array.rows != rows_) {
    throw CorpusError(arrays_.file().string() + ": dataset '" + name + "' has " +
                      std::to_string(array.rows) + " rows, but '" + kIds + "' has " +
                      std::to_string(rows_));
  }
  return open_number_rows(arrays_, file_, name, array);
}

void NvidiaRows::refuse(const std::string& dataset, std::uint64_t row,
                        const std::string& what) const {
  throw CorpusError(arrays_.file().string() + ": dataset '" + dataset + "', row " +
                    std::to_string(row) + ": " + what);
}

std::uint32_t NvidiaRows::id_of(std::int64_t number, const char* dataset, std::uint64_t row) const {
  if (number < 0 || number >= static_cast<std::int64_t>(tokenizer_.vocab_size())) {
    refuse(dataset, row,
           "token id " + std::to_string(number) + ", but the vocabulary has " +
               std::to_string(tokenizer_.vocab_size()) + " tokens");
  }
  return static_cast<std::uint32_t>(number);
}

// Without padding.
std::size_t NvidiaRows::length_of(std::uint64_t row) {
  if (mask_ == nullptr) {
    std::size_t length = row_.size();
    if (varying_) return length;
    while (length > 0 && row_[length - 1] == tokenizer_.special_tokens().pad) --length;
    return length;
  }
  mask_->read(row, masks_);
  const auto end = std::find(masks_.begin(), masks_.end(), 0);
  const bool plain = masks_.size() == row_.size() &&
                     std::all_of(masks_.begin(), end, [](std::int64_t bit) { return bit == 1; }) &&
                     std::all_of(end, masks_.end(), [](std::int64_t bit) { return bit == 0; });
  if (!plain) refuse(kMask, row, "is not ones followed by zeros, one for each of the row's tokens");
  return static_cast<std::size_t>(end - masks_.begin());
}

// Position 0 is [CLS], which is never masked: the first 0 ends the list.
void NvidiaRows::restore(std::uint64_t row, std::size_t length) {
  positions_->read(row, places_);
  masked_ids_->read(row, originals_);
  if (places_.size() != originals_.size()) {
    refuse(kMaskedIds, row,
           "has " + std::to_string(originals_.size()) + " ids for " +
               std::to_string(places_.size()) + " positions");
  }
  for (std::size_t i = 0; i < places_.size() && places_[i] != 0; ++i) {
    if (places_[i] < 0 || places_[i] >= static_cast<std::int64_t>(length)) {
      refuse(kPositions, row,
             "position " + std::to_string(places_[i]) + " in a row of " + std::to_string(length) +
                 " tokens");
    }
    row_[static_cast<std::size_t>(places_[i])] = id_of(originals_[i], kMaskedIds, row);
  }
}

void NvidiaRows::read(std::uint64_t row, NvidiaRow& result) {
  const SpecialTokens& special = tokenizer_.special_tokens();
  ids_->read(row, row_);
  const std::size_t length = length_of(row);
  if (length == 0 || row_[0] != special.cls) {
    refuse(kIds, row,
           "does not begin with " + tokenizer_.token(special.cls) + " (" +
               std::to_string(special.cls) + "): was it made with another vocabulary?");
  }
  restore(row, length);
  result = {};
  std::vector<std::uint32_t> segment;
  for (std::size_t i = 1; i < length; ++i) {
    const std::uint32_t id = id_of(row_[i], kIds, row);
    if (id == special.mask) result.restored = false;
    if (id != special.sep) segment.push_back(id);
    if ((id == special.sep || i + 1 == length) && !segment.empty()) {
      result.segments.push_back(std::move(segment));
      segment.clear();
    }
  }
  if (labels_ == nullptr) return;
  labels_->read(row, label_);
  result.random_next = !label_.empty() && label_[0] == 1;
}

}  // namespace tupelo
