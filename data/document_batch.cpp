#include "data/document_batch.h"

#include <utility>

#include "data/document_text.h"

namespace tupelo {

bool read_document_batch(DocumentReader& reader, std::size_t bytes, DocumentBatch& batch) {
  std::size_t sum = 0;
  RawDocument document;
  while (sum < bytes && reader.next(document)) {
    sum += document.text.size() + sizeof(RawDocument);
    batch.documents.push_back(std::move(document));
    document = {};
  }
  return !batch.documents.empty();
}

std::string TextExtractor::text_of(RawDocument&& document, std::uint64_t& invalid_bytes) const {
  invalid_bytes += replace_invalid_utf8(document.text);
  const TextSource& source = sources_[document.source];
  if (source.format != TextFormat::kJsonLines) return std::move(document.text);
  return text_of_json_line(document.text, key_,
                           source.file.string() + ":" + std::to_string(document.line));
}

}  // namespace tupelo
