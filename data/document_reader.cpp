#include "data/document_reader.h"

#include <utility>

#include "data/errors.h"

namespace tupelo {

DocumentReader::DocumentReader(const std::vector<TextSource>& sources, ReadOptions options)
    : DocumentReader(sources, std::move(options), {0, sources.size()}) {}

DocumentReader::DocumentReader(const std::vector<TextSource>& sources, ReadOptions options,
                               const TextGroup& group)
    : sources_(sources), options_(std::move(options)), group_(group), source_(group.first_source) {}

std::uint64_t DocumentReader::bytes_read() const {
  return bytes_of_done_files_ + (documents_ ? documents_->bytes_read() : 0);
}

bool DocumentReader::next(RawDocument& document) {
  for (; source_ < group_.first_source + group_.sources; ++source_) {
    if (next_of_file(document)) {
      document.source = source_;
      document.origin = group_.range ? group_.range->begin : 0;
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
    if (!documents_) {
      documents_ = group_.range ? open_documents(sources_[source_], options_, *group_.range)
                                : open_documents(sources_[source_], options_);
    }
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
