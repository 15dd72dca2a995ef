// Documents in handfuls, for threads to work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/document_reader.h"

namespace tupelo {

struct DocumentBatch {
  std::vector<RawDocument> documents;
};

// Fills `batch` with about `bytes` of text, at least one document; false when there is none left.
bool read_document_batch(DocumentReader& reader, std::size_t bytes, DocumentBatch& batch);

// The text inside raw documents. Any thread may call it.
class TextExtractor {
 public:
  // `sources` and `key` must outlive the extractor.
  TextExtractor(const std::vector<TextSource>& sources, const std::string& key)
      : sources_(sources), key_(key) {}

  // Valid UTF-8; what was not is replaced and its bytes added to `invalid_bytes`. Throws
  // CorpusError that names file and line when a JSON line has no text.
  std::string text_of(RawDocument&& document, std::uint64_t& invalid_bytes) const;

 private:
  const std::vector<TextSource>& sources_;
  const std::string& key_;
};

}  // namespace tupelo
