#include "data/document_reader.h"

#include <utility>

#include "data/document_text.h"
#include "data/errors.h"

namespace tupelo {

DocumentReader::DocumentReader(const std::vector<TextSource>& sources) : sources_(sources) {}

std::uint64_t DocumentReader::bytes_read() const {
  return bytes_of_done_files_ + (lines_ ? lines_->bytes_read() : 0);
}

bool DocumentReader::next(RawDocument& document) {
  for (; source_ < sources_.size(); ++source_) {
    if (!lines_) open_file();
    if (next_of_file(document)) {
      document.source = source_;
      return true;
    }
    bytes_of_done_files_ += lines_->bytes_read();
    lines_.reset();
  }
  return false;
}

void DocumentReader::open_file() {
  const TextSource& source = sources_[source_];
  lines_.emplace(source.file,
                 source.format == TextFormat::kJsonLines ? kMaxDocumentBytes : kMaxLineBytes);
}

bool DocumentReader::next_of_file(RawDocument& document) {
  document.text.clear();
  switch (sources_[source_].format) {
    case TextFormat::kLinePerDocument:
      return next_line(document);
    case TextFormat::kJsonLines:
      return next_json_line(document);
    default:
      return next_paragraphs(document);
  }
}

bool DocumentReader::next_paragraphs(RawDocument& document) {
  if (carried_) {
    document.text = std::move(*carried_);
    document.line = lines_->number();
    carried_.reset();
  }
  std::string_view line;
  while (lines_->next(line)) {
    if (is_blank(line)) {
      if (document.text.empty()) continue;
      return true;
    }
    if (document.text.empty()) {
      document.line = lines_->number();
    } else if (document.text.size() + 1 + line.size() > kMaxDocumentBytes) {
      carried_.emplace(line);
      return true;
    } else {
      document.text += '\n';
    }
    document.text += line;
  }
  return !document.text.empty();
}

bool DocumentReader::next_line(RawDocument& document) {
  std::string_view line;
  if (!lines_->next(line)) return false;
  document.text = line;
  document.line = lines_->number();
  return true;
}

bool DocumentReader::next_json_line(RawDocument& document) {
  std::string_view line;
  do {
    if (!lines_->next(line)) return false;
  } while (is_blank(line));
  document.line = lines_->number();
  if (lines_->cut()) {
    throw CorpusError(sources_[source_].file.string() + ":" + std::to_string(document.line) +
                      ": the line is longer than " + std::to_string(kMaxDocumentBytes) +
                      " bytes, the most of a JSON document");
  }
  document.text = line;
  return true;
}

}  // namespace tupelo
