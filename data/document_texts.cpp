#include "data/document_texts.h"

#include <algorithm>
#include <utility>

#include "data/content_digest.h"

namespace tupelo {
namespace {

std::optional<Cleaner> cleaner_of(const PrepareOptions& options) {
  if (!options.cleaning.enabled) return std::nullopt;
  return std::make_optional<Cleaner>(options.cleaning, options.language);
}

// Those of documents [first, first + count).
std::vector<std::uint64_t> within(const std::vector<std::uint64_t>& positions, std::uint64_t first,
                                  std::uint64_t count) {
  const auto begin = std::lower_bound(positions.begin(), positions.end(), position_of(first, 0));
  return {begin, std::lower_bound(begin, positions.end(), position_of(first + count, 0))};
}

}  // namespace

ReadOptions read_options(const PrepareOptions& options) {
  return {options.encoding, options.text_column, options.damaged_input};
}

DocumentTexts::Pass::Pass(const DocumentTexts& texts, const TextGroup& group, Duplicates duplicates)
    : reader_(texts.sources_, read_options(texts.options_), group),
      part_bytes_(texts.options_.unit_bytes / 2),
      duplicates_of_(std::move(duplicates)) {}

void DocumentTexts::Pass::begin_part() {
  part_ = part_ ? *part_ + 1 : 0;
  documents_ = bytes_ = 0;
  if (duplicates_of_) duplicates_ = duplicates_of_(*part_);
}

bool DocumentTexts::Pass::next(std::size_t bytes, Batch& batch) {
  const bool full = !part_ || bytes_ >= part_bytes_;
  const std::uint64_t left = full ? part_bytes_ : part_bytes_ - bytes_;
  if (!read_document_batch(reader_, std::min<std::uint64_t>(bytes, left), batch.raw)) return false;
  if (full) begin_part();
  batch.part = *part_;
  batch.first = documents_;
  batch.duplicates = within(duplicates_, documents_, batch.raw.documents.size());
  documents_ += batch.raw.documents.size();
  bytes_ += batch.raw.bytes;
  return true;
}

DocumentTexts::DocumentTexts(const std::vector<TextSource>& sources, const PrepareOptions& options)
    : sources_(sources),
      options_(options),
      extractor_(sources, {options.text_key, options.invalid_bytes, options.damaged_input}),
      cleaner_(cleaner_of(options)) {}

CleaningReport DocumentTexts::empty_report() const {
  return cleaner_ ? cleaner_->empty_report() : CleaningReport();
}

std::vector<Fingerprint> DocumentTexts::fingerprints(Batch&& batch) const {
  ContentDigest digest;
  TextCounts ignored;
  CleaningReport unused = empty_report();
  std::vector<Fingerprint> all;
  for (std::size_t i = 0; i < batch.raw.documents.size(); ++i) {
    const std::optional<std::string> text = take_clean(batch, i, ignored, unused);
    if (!text) continue;
    const auto some = cleaner_->fingerprints(*text, batch.first + i, digest);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// By the rules that look at a single document.
std::optional<std::string> DocumentTexts::take_clean(Batch& batch, std::size_t i,
                                                     TextCounts& counts,
                                                     CleaningReport& report) const {
  RawDocument& raw = batch.raw.documents[i];
  const TextPlace place = raw.place();
  std::optional<std::string> text = extractor_.text_of(std::move(raw), counts);
  if (cleaner_ && text && !text->empty()) cleaner_->clean(*text, place, report);
  return text;
}

std::optional<std::string> DocumentTexts::take_text(Batch& batch, std::size_t i, TextCounts& counts,
                                                    CleaningReport& report) const {
  const TextPlace place = batch.raw.documents[i].place();
  std::optional<std::string> text = take_clean(batch, i, counts, report);
  if (!cleaner_ || !text) return text;
  cleaner_->drop_duplicates(*text, within(batch.duplicates, batch.first + i, 1), place, report);
  if (text->empty()) return std::nullopt;
  ++report.documents_after;
  report.bytes_after += text->size();
  return text;
}

}  // namespace tupelo
