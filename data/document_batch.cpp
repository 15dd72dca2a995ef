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

// Its documents are whole files.
bool is_page(TextFormat format) {
  return format == TextFormat::kHtml || format == TextFormat::kManual ||
         format == TextFormat::kRestructured;
}

}  // namespace

bool read_document_batch(DocumentReader& reader, std::size_t bytes, DocumentBatch& batch) {
  RawDocument document;
  while (batch.bytes < bytes && reader.next(document)) {
    batch.bytes += document.text.size() + sizeof(RawDocument);
    batch.documents.push_back(std::move(document));
    document = {};
  }
  return !batch.documents.empty();
}

void TextCounts::add(const TextCounts& other) {
  invalid_bytes += other.invalid_bytes;
  dropped_lines += other.dropped_lines;
  damaged_records += other.damaged_records;
  for (const DamagedRecord& record : other.damage) {
    if (damage.size() < kMostDamageTold) damage.push_back(record);
  }
}

std::string TextExtractor::extract(RawDocument& document, TextCounts& counts) const {
  if (!document.damage.empty()) throw CorpusError(document.damage);
  if (options_.invalid_bytes == InvalidBytes::kReplace) {
    counts.invalid_bytes += replace_invalid_bytes(document.text);
  } else {
    counts.invalid_bytes += drop_invalid_lines(document.text, counts.dropped_lines);
    if (document.text.empty()) return {};
  }
  switch (sources_[document.source].format) {
    case TextFormat::kJsonLines:
      return text_of_json_line(document.text, options_.text_key);
    case TextFormat::kHtml:
      return text_of_html(document.text);
    case TextFormat::kManual:
      return text_of_manual(document.text);
    case TextFormat::kRestructured:
      return text_of_restructured(document.text);
    default:
      return std::move(document.text);
  }
}

std::optional<std::string> TextExtractor::text_of(RawDocument&& document,
                                                  TextCounts& counts) const {
  TextPlace place = document.place();
  if (is_page(sources_[place.source].format)) place.line = 0;
  try {
    return extract(document, counts);
  } catch (const CorpusError& error) {
    if (options_.damaged_input == DamagedInput::kRefuse) {
      throw CorpusError(text_place(place, sources_) + ": " + error.what());
    }
    ++counts.damaged_records;
    if (counts.damage.size() < kMostDamageTold) counts.damage.push_back({place, error.what()});
    return std::nullopt;
  }
}

}  // namespace tupelo
