// Documents in handfuls, for threads to work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/document_reader.h"

namespace tupelo {

struct DocumentBatch {
  std::vector<RawDocument> documents;
  std::size_t bytes = 0;  // of their texts and of what holds them
};

// Fills `batch` with about `bytes` of text, at least one document; false when there is none left.
bool read_document_batch(DocumentReader& reader, std::size_t bytes, DocumentBatch& batch);

// A record that held no text.
struct DamagedRecord {
  TextPlace place;
  std::string reason;  // what is wrong there
};

// What extraction met.
struct TextCounts {
  std::uint64_t invalid_bytes = 0;  // of no character, or zero
  std::uint64_t dropped_lines = 0;  // because of them
  std::uint64_t damaged_records = 0;
  std::vector<DamagedRecord> damage;  // the first few of them

  void add(const TextCounts& other);
};

struct ExtractionOptions {
  std::string text_key = "text";
  InvalidBytes invalid_bytes = InvalidBytes::kReplace;
  DamagedInput damaged_input = DamagedInput::kRefuse;
};

// The text inside raw documents. Any thread may call it.
class TextExtractor {
 public:
  // `sources` must outlive the extractor.
  TextExtractor(const std::vector<TextSource>& sources, ExtractionOptions options)
      : sources_(sources), options_(std::move(options)) {}

  // Valid UTF-8 without zero bytes, except for those that JSON spells out: what was not is replaced
  // by U+FFFD or its line dropped. None for a damaged record that is skipped. Otherwise throws
  // CorpusError that names file and line when a JSON line has no text, a page is none.
  std::optional<std::string> text_of(RawDocument&& document, TextCounts& counts) const;

 private:
  std::string extract(RawDocument& document, TextCounts& counts) const;

  const std::vector<TextSource>& sources_;
  const ExtractionOptions options_;
};

}  // namespace tupelo
