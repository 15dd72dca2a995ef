// The documents of one file, by its format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "data/prepare.h"
#include "data/text_place.h"
#include "data/text_source.h"

namespace tupelo {

// A longer line counts as several (as a record it is damaged beyond kMaxDocumentBytes).
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;
// A longer document goes on, at the next line, as a document of its own; a longer page is damaged.
inline constexpr std::size_t kMaxDocumentBytes = std::size_t{16} << 20;

struct RawDocument {
  std::string text;          // not yet taken out of its format: a line of JSON, a page of HTML
  std::uint64_t source = 0;  // index of its file
  std::uint64_t origin = 0;  // the byte of the file from which lines count
  std::uint64_t line = 0;    // where it begins; of a catalogue, the number of its entry
  std::string damage;        // why this record holds no text; empty when it does

  TextPlace place() const { return {source, origin, line}; }
};

struct ReadOptions {
  TextEncoding encoding = TextEncoding::kUtf8;
  std::string text_column = "text";
  DamagedInput damaged_input = DamagedInput::kRefuse;
};

class FileDocuments {
 public:
  virtual ~FileDocuments() = default;
  // Fills text, line and damage of an empty `document`; false after the last one. In a kBlankLine
  // document, lines are joined by "\n"; blank lines are no documents, except in kLinePerDocument.
  // Throws what the file's ByteSource throws.
  virtual bool next(RawDocument& document) = 0;
  virtual std::uint64_t bytes_read() const = 0;
};

// Throws what open_byte_source and open_text throw, and CorpusError for a table without the column
// and for a catalogue that is none.
std::unique_ptr<FileDocuments> open_documents(const TextSource& source, const ReadOptions& options);

// The same for a part of a file that is_divisible(): bytes between two document boundaries.
std::unique_ptr<FileDocuments> open_documents(const TextSource& source, const ReadOptions& options,
                                              const FileRange& range);

}  // namespace tupelo
