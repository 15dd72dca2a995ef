// Documents of text files, one after another, in bounded memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/input/file_documents.h"
#include "data/text_group.h"
#include "data/text_source.h"

namespace tupelo {

struct DamagedFile {
  std::uint64_t source = 0;
  std::string reason;  // a sentence that names the file
};

class DocumentReader {
 public:
  // `sources` must outlive the reader.
  explicit DocumentReader(const std::vector<TextSource>& sources, ReadOptions options = {});
  // The documents of a group of them.
  DocumentReader(const std::vector<TextSource>& sources, ReadOptions options,
                 const TextGroup& group);

  // False after the last document of the last file. Throws CorpusError when a file is not what it
  // should be, unless `options` say to skip: then it ends where it stopped making sense, or gives
  // nothing when that was within its first 64 KiB. A file that changed since it was listed is
  // always an error, std::system_error one that cannot be read.
  bool next(RawDocument& document);

  // Of the files, so compressed bytes where they are compressed.
  std::uint64_t bytes_read() const;

  // Files that ended early, so far.
  const std::vector<DamagedFile>& damaged_files() const { return damaged_files_; }

 private:
  bool next_of_file(RawDocument& document);

  const std::vector<TextSource>& sources_;
  const ReadOptions options_;
  const TextGroup group_;
  std::size_t source_;
  std::unique_ptr<FileDocuments> documents_;
  std::vector<DamagedFile> damaged_files_;
  std::uint64_t bytes_of_done_files_ = 0;
};

}  // namespace tupelo
