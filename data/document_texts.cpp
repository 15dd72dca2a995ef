#include "data/document_texts.h"

#include <algorithm>
#include <utility>

#include "data/content_digest.h"
#include "data/ordered_pipeline.h"

namespace tupelo {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{1} << 20;

ReadOptions read_options(const PrepareOptions& options) {
  return {options.encoding, options.text_column, options.damaged_input};
}

std::optional<Cleaner> cleaner_of(const PrepareOptions& options) {
  if (!options.cleaning.enabled) return std::nullopt;
  return std::make_optional<Cleaner>(options.cleaning, options.language);
}

}  // namespace

DocumentTexts::Pass::Pass(const DocumentTexts& texts)
    : reader_(texts.sources_, read_options(texts.options_)) {
  if (texts.duplicates_) duplicates_.emplace(*texts.duplicates_);
}

bool DocumentTexts::Pass::next(std::size_t bytes, Batch& batch) {
  batch.first = documents_;
  if (!read_document_batch(reader_, bytes, batch.raw)) return false;
  documents_ += batch.raw.documents.size();
  if (duplicates_) batch.duplicates = duplicates_->take_below(position_of(documents_, 0));
  return true;
}

DocumentTexts::DocumentTexts(const std::vector<TextSource>& sources, const PrepareOptions& options,
                             std::filesystem::path scratch)
    : sources_(sources),
      options_(options),
      scratch_(std::move(scratch)),
      extractor_(sources, {options.text_key, options.invalid_bytes, options.damaged_input}),
      cleaner_(cleaner_of(options)) {}

CleaningReport DocumentTexts::empty_report() const {
  return cleaner_ ? cleaner_->empty_report() : CleaningReport();
}

void DocumentTexts::find_duplicates(const std::function<void(std::uint64_t)>& progress) {
  if (!cleaner_ || !cleaner_->looks_for_duplicates()) return;
  DuplicateFinder finder(scratch_, options_.cleaning.sort_bytes);
  Pass pass(*this);
  ordered_pipeline<Batch>(
      options_.threads, [&](Batch& batch) { return pass.next(kBatchBytes, batch); },
      [&](Batch&& batch) {
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
      },
      [&](std::vector<Fingerprint>&& all) {
        for (const Fingerprint& fingerprint : all) finder.add(fingerprint);
        progress(pass.reader().bytes_read());
      });
  finder.finish();
  duplicates_.emplace(std::move(finder));
}

std::function<std::string()> DocumentTexts::place_of(const RawDocument& document) const {
  return [this, source = document.source, line = document.line] {
    return sources_[source].file.string() + ":" + std::to_string(line);
  };
}

// By the rules that look at a single document.
std::optional<std::string> DocumentTexts::take_clean(Batch& batch, std::size_t i,
                                                     TextCounts& counts,
                                                     CleaningReport& report) const {
  RawDocument& raw = batch.raw.documents[i];
  const auto place = place_of(raw);
  std::optional<std::string> text = extractor_.text_of(std::move(raw), counts);
  if (cleaner_ && text && !text->empty()) cleaner_->clean(*text, place, report);
  return text;
}

std::optional<std::string> DocumentTexts::take_text(Batch& batch, std::size_t i, TextCounts& counts,
                                                    CleaningReport& report) const {
  const auto place = place_of(batch.raw.documents[i]);
  std::optional<std::string> text = take_clean(batch, i, counts, report);
  if (!cleaner_ || !text) return text;
  const auto& all = batch.duplicates;
  const auto from = std::lower_bound(all.begin(), all.end(), position_of(batch.first + i, 0));
  const auto to = std::lower_bound(from, all.end(), position_of(batch.first + i + 1, 0));
  cleaner_->drop_duplicates(*text, {from, to}, place, report);
  if (text->empty()) return std::nullopt;
  ++report.documents_after;
  report.bytes_after += text->size();
  return text;
}

}  // namespace tupelo
