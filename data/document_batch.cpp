#include "data/document_batch.h"

#include <utility>

#include "data/document_text.h"
#include "data/errors.h"
#include "data/input/html_text.h"
#include "data/input/manual_text.h"
#include "data/input/restructured_text.h"

namespace tupelo {
namespace {

constexpr std::size_t kMostDamageTold = 20;

}  // namespace

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

void TextCounts::add(const TextCounts& other) {
  invalid_bytes += other.invalid_bytes;
  dropped_lines += other.dropped_lines;
  damaged_records += other.damaged_records;
  for (const std::string& reason : other.damage) {
    if (damage.size() < kMostDamageTold) damage.push_back(reason);
  }
}

std::string TextExtractor::extract(RawDocument& document, TextCounts& counts) const {
  const TextSource& source = sources_[document.source];
  const std::string place = source.file.string() + ":" + std::to_string(document.line);
  if (!document.damage.empty()) throw CorpusError(place + ": " + document.damage);
  if (options_.invalid_bytes == InvalidBytes::kReplace) {
    counts.invalid_bytes += replace_invalid_bytes(document.text);
  } else {
    counts.invalid_bytes += drop_invalid_lines(document.text, counts.dropped_lines);
    if (document.text.empty()) return {};
  }
  switch (source.format) {
    case TextFormat::kJsonLines:
      return text_of_json_line(document.text, options_.text_key, place);
    case TextFormat::kHtml:
      return text_of_html(document.text, source.file.string());
    case TextFormat::kManual:
      return text_of_manual(document.text, source.file.string());
    case TextFormat::kRestructured:
      return text_of_restructured(document.text);
    default:
      return std::move(document.text);
  }
}

std::optional<std::string> TextExtractor::text_of(RawDocument&& document,
                                                  TextCounts& counts) const {
  try {
    return extract(document, counts);
  } catch (const CorpusError& error) {
    if (options_.damaged_input == DamagedInput::kRefuse) throw;
    ++counts.damaged_records;
    if (counts.damage.size() < kMostDamageTold) counts.damage.emplace_back(error.what());
    return std::nullopt;
  }
}

}  // namespace tupelo
