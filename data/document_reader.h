// Documents of text files, one after another, in bounded memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/line_reader.h"
#include "data/text_source.h"

namespace tupelo {

// A longer line counts as several (JSON lines: is refused beyond kMaxDocumentBytes).
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;
// A longer document goes on, at the next line, as a document of its own.
inline constexpr std::size_t kMaxDocumentBytes = std::size_t{16} << 20;

struct RawDocument {
  std::string text;          // for kJsonLines: the line, not yet parsed
  std::uint64_t source = 0;  // index of its file
  std::uint64_t line = 0;    // where it begins
};

class DocumentReader {
 public:
  // `sources` must outlive the reader.
  explicit DocumentReader(const std::vector<TextSource>& sources);

  // False after the last document of the last file. In a kBlankLine document, lines are joined by
  // "\n"; blank lines are no documents, except in kLinePerDocument. Throws what LineReader throws,
  // and CorpusError on a JSON line that is too long.
  bool next(RawDocument& document);

  std::uint64_t bytes_read() const;

 private:
  bool next_of_file(RawDocument& document);
  bool next_paragraphs(RawDocument& document);
  bool next_line(RawDocument& document);
  bool next_json_line(RawDocument& document);
  void open_file();

  const std::vector<TextSource>& sources_;
  std::size_t source_ = 0;
  std::optional<LineReader> lines_;
  std::optional<std::string> carried_;  // a line that did not fit the document before
  std::uint64_t bytes_of_done_files_ = 0;
};

}  // namespace tupelo
