// The texts that a corpus is made from, cleaned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/cleaning/cleaner.h"
#include "data/document_batch.h"
#include "data/document_reader.h"
#include "data/prepare.h"

namespace tupelo {

// Any thread may call the members.
class DocumentTexts {
 public:
  struct Batch {
    DocumentBatch raw;
    std::uint64_t part = 0;                 // of its group, from 0
    std::uint64_t first = 0;                // number of its first document, through that part
    std::vector<std::uint64_t> duplicates;  // positions (fingerprint.h) in it, ascending
  };
  // The positions of duplicates in a part, ascending.
  using Duplicates = std::function<std::vector<std::uint64_t>(std::uint64_t part)>;

  // One reading of a group from the beginning to the end. A part of it ends with the document that
  // makes it reach half of `unit_bytes` (PrepareOptions), however it is read.
  class Pass {
   public:
    // `texts` must outlive it.
    Pass(const DocumentTexts& texts, const TextGroup& group, Duplicates duplicates = {});
    // About `bytes` of raw text of one part, at least one document; false when there is none left.
    bool next(std::size_t bytes, Batch& batch);
    const DocumentReader& reader() const { return reader_; }

   private:
    void begin_part();

    DocumentReader reader_;
    const std::uint64_t part_bytes_;
    const Duplicates duplicates_of_;
    std::optional<std::uint64_t> part_;
    std::uint64_t documents_ = 0, bytes_ = 0;  // of the part
    std::vector<std::uint64_t> duplicates_;
  };

  // `sources` and `options` must outlive it. Throws std::invalid_argument (check_cleaning_options).
  DocumentTexts(const std::vector<TextSource>& sources, const PrepareOptions& options);

  bool looks_for_duplicates() const { return cleaner_ && cleaner_->looks_for_duplicates(); }
  CleaningReport empty_report() const;

  // What to compare the documents of the batch with others by.
  std::vector<Fingerprint> fingerprints(Batch&& batch) const;

  // The text of document `i` of the batch, which loses it; none when it was skipped or dropped.
  std::optional<std::string> take_text(Batch& batch, std::size_t i, TextCounts& counts,
                                       CleaningReport& report) const;

 private:
  std::optional<std::string> take_clean(Batch& batch, std::size_t i, TextCounts& counts,
                                        CleaningReport& report) const;

  const std::vector<TextSource>& sources_;
  const PrepareOptions& options_;
  const TextExtractor extractor_;
  const std::optional<Cleaner> cleaner_;
};

ReadOptions read_options(const PrepareOptions& options);

}  // namespace tupelo
