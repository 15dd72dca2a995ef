#include "data/document_reader.h"

#include <utility>

#include "data/errors.h"

namespace tupelo {

DocumentReader::DocumentReader(const std::vector<TextSource>& sources, ReadOptions options)
    : sources_(sources), options_(std::move(options)) {}

std::uint64_t DocumentReader::bytes_read() const {
  return bytes_of_done_files_ + (documents_ ? documents_->bytes_read() : 0);
}

bool DocumentReader::next(RawDocument& document) {
  for (; source_ < sources_.size(); ++source_) {
    if (next_of_file(document)) {
      document.source = source_;
      return true;
    }
    if (documents_) bytes_of_done_files_ += documents_->bytes_read();
    documents_.reset();
  }
  return false;
}

bool DocumentReader::next_of_file(RawDocument& document) {
  document = {};
  try {
    if (!documents_) documents_ = open_documents(sources_[source_], options_);
    return documents_->next(document);
  } catch (const FileChanged&) {
    throw;
  } catch (const CorpusError& error) {
    if (options_.damaged_input == DamagedInput::kRefuse) throw;
    damaged_files_.push_back({source_, error.what()});
    return false;
  }
}

}  // namespace tupelo
