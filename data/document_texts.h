// The texts that a corpus is made of: read, taken out of their formats, cleaned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/cleaning/cleaner.h"
#include "data/cleaning/duplicate_finder.h"
#include "data/document_batch.h"
#include "data/document_reader.h"
#include "data/prepare.h"

namespace tupelo {

class DocumentTexts {
 public:
  struct Batch {
    DocumentBatch raw;
    std::uint64_t first = 0;                // number of its first document, through all sources
    std::vector<std::uint64_t> duplicates;  // positions in it, ascending
  };

  // One reading from the beginning to the end; `texts` must outlive it.
  class Pass {
   public:
    explicit Pass(const DocumentTexts& texts);
    // About `bytes` of raw text, at least one document; false when there is none left.
    bool next(std::size_t bytes, Batch& batch);
    const DocumentReader& reader() const { return reader_; }

   private:
    DocumentReader reader_;
    std::optional<DuplicateFinder::Positions> duplicates_;
    std::uint64_t documents_ = 0;
  };

  // `sources` and `options` must outlive it. Scratch files lie in `scratch`, an existing folder.
  // Throws std::invalid_argument (check_cleaning_options).
  DocumentTexts(const std::vector<TextSource>& sources, const PrepareOptions& options,
                std::filesystem::path scratch);

  // Reads everything once, if the options ask for it, before the first other pass; tells the bytes
  // read.
  void find_duplicates(const std::function<void(std::uint64_t)>& progress);

  CleaningReport empty_report() const;

  // The text of document `i` of the batch, which loses it; none when it was skipped or dropped. Any
  // thread may ask.
  std::optional<std::string> take_text(Batch& batch, std::size_t i, TextCounts& counts,
                                       CleaningReport& report) const;

 private:
  std::optional<std::string> take_clean(Batch& batch, std::size_t i, TextCounts& counts,
                                        CleaningReport& report) const;
  std::function<std::string()> place_of(const RawDocument& document) const;

  const std::vector<TextSource>& sources_;
  const PrepareOptions& options_;
  const std::filesystem::path scratch_;
  const TextExtractor extractor_;
  const std::optional<Cleaner> cleaner_;
  std::optional<DuplicateFinder> duplicates_;
};

}  // namespace tupelo
