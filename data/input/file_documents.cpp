#include "data/input/file_documents.h"

#include <optional>
#include <utility>

#include "data/document_text.h"
#include "data/errors.h"
#include "data/input/message_catalogue.h"
#include "data/input/plain_file.h"
#include "data/input/text_bytes.h"
#include "data/line_reader.h"

namespace tupelo {
namespace {

using Text = std::unique_ptr<ByteSource>;

class LineDocuments : public FileDocuments {
 public:
  explicit LineDocuments(Text text) : lines_(std::move(text), kMaxLineBytes) {}

  bool next(RawDocument& document) override {
    std::string_view line;
    if (!lines_.next(line)) return false;
    document.text = line;
    document.line = lines_.number();
    return true;
  }
  std::uint64_t bytes_read() const override { return lines_.bytes_read(); }

 private:
  LineReader lines_;
};

class ParagraphDocuments : public FileDocuments {
 public:
  explicit ParagraphDocuments(Text text) : lines_(std::move(text), kMaxLineBytes) {}

  bool next(RawDocument& document) override;
  std::uint64_t bytes_read() const override { return lines_.bytes_read(); }

 private:
  LineReader lines_;
  std::optional<std::string> carried_;  // a line that did not fit the document before
};

bool ParagraphDocuments::next(RawDocument& document) {
  if (carried_) {
    document.text = std::move(*carried_);
    document.line = lines_.number();
    carried_.reset();
  }
  std::string_view line;
  while (lines_.next(line)) {
    if (is_blank(line)) {
      if (document.text.empty()) continue;
      return true;
    }
    if (document.text.empty()) {
      document.line = lines_.number();
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

// Lines that are read as a whole or not at all.
class Records {
 public:
  explicit Records(Text text) : lines_(std::move(text), kMaxDocumentBytes) {}

  // The next line that is not blank, or `damage` to it; false after the last one.
  bool next(RawDocument& record) {
    std::string_view line;
    do {
      if (!lines_.next(line)) return false;
    } while (is_blank(line));
    record.line = lines_.number();
    if (lines_.cut()) {
      record.damage =
          "the line is longer than " + std::to_string(kMaxDocumentBytes) + " bytes, the most";
      while (lines_.cut() && lines_.next(line)) continue;
    } else {
      record.text = line;
    }
    return true;
  }
  std::uint64_t bytes_read() const { return lines_.bytes_read(); }

 private:
  LineReader lines_;
};

class JsonDocuments : public FileDocuments {
 public:
  explicit JsonDocuments(Text text) : records_(std::move(text)) {}
  bool next(RawDocument& document) override { return records_.next(document); }
  std::uint64_t bytes_read() const override { return records_.bytes_read(); }

 private:
  Records records_;
};

// The field at `column` (from 0) of a line; none when the line has fewer.
std::optional<std::string_view> field_of(std::string_view line, std::size_t column) {
  for (; column > 0; --column) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos) return std::nullopt;
    line.remove_prefix(tab + 1);
  }
  return line.substr(0, line.find('\t'));
}

bool is_column_number(const std::string& name) {
  return name.find_first_not_of("0123456789") == std::string::npos && name.size() < 10;
}

// Where the texts of a table stand, from 0: by the number from 1 that `name` is, or by the first
// line, which is taken from `records`. None when the table is empty.
std::optional<std::size_t> find_column(Records& records, const std::string& name,
                                       const std::string& file) {
  if (is_column_number(name)) return std::stoul(name) - 1;
  RawDocument header;
  if (!records.next(header)) return std::nullopt;
  for (std::size_t column = 0;; ++column) {
    const auto field = field_of(header.text, column);
    if (!field) {
      throw CorpusError(file + ":" + std::to_string(header.line) + ": has no column '" + name +
                        "' in its first line; a number stands for a column of a file without "
                        "names");
    }
    if (*field == name) return column;
  }
}

class TableDocuments : public FileDocuments {
 public:
  TableDocuments(Text text, const std::string& name, const std::string& file)
      : records_(std::move(text)), name_(name), column_(find_column(records_, name, file)) {}
  // Behind the first line.
  TableDocuments(Text text, const std::string& name, std::optional<std::size_t> column)
      : records_(std::move(text)), name_(name), column_(column) {}

  bool next(RawDocument& document) override {
    if (!column_ || !records_.next(document)) return false;
    if (!document.damage.empty()) return true;
    const auto field = field_of(document.text, *column_);
    if (field) {
      document.text = std::string(*field);
    } else {
      document.damage = "has no column " + std::to_string(*column_ + 1) + " ('" + name_ + "')";
    }
    return true;
  }
  std::uint64_t bytes_read() const override { return records_.bytes_read(); }

 private:
  Records records_;
  std::string name_;
  std::optional<std::size_t> column_;
};

class WholeDocument : public FileDocuments {
 public:
  WholeDocument(Text text, std::string file) : text_(std::move(text)), file_(std::move(file)) {}

  bool next(RawDocument& document) override {
    if (done_) return false;
    done_ = true;
    document.text = read_all(*text_, kMaxDocumentBytes, file_);
    document.line = 1;
    return !is_blank(document.text);
  }
  std::uint64_t bytes_read() const override { return text_->file_bytes(); }

 private:
  Text text_;
  std::string file_;
  bool done_ = false;
};

class CatalogueDocuments : public FileDocuments {
 public:
  CatalogueDocuments(ByteSource& bytes, const std::string& file)
      : catalogue_(read_all(bytes, kMaxCatalogueBytes, file), file), bytes_(bytes.file_bytes()) {}

  bool next(RawDocument& document) override {
    if (!catalogue_.next(document.text)) return false;
    document.line = catalogue_.entry();
    return true;
  }
  std::uint64_t bytes_read() const override { return bytes_; }

 private:
  MessageCatalogue catalogue_;
  std::uint64_t bytes_;
};

std::unique_ptr<FileDocuments> documents_of(Text text, const TextSource& source,
                                            const ReadOptions& options) {
  const std::string name = source.file.string();
  switch (source.format) {
    case TextFormat::kLinePerDocument:
      return std::make_unique<LineDocuments>(std::move(text));
    case TextFormat::kJsonLines:
      return std::make_unique<JsonDocuments>(std::move(text));
    case TextFormat::kTabSeparated:
      return std::make_unique<TableDocuments>(std::move(text), options.text_column, name);
    case TextFormat::kHtml:
    case TextFormat::kManual:
    case TextFormat::kRestructured:
      return std::make_unique<WholeDocument>(std::move(text), name);
    default:
      return std::make_unique<ParagraphDocuments>(std::move(text));
  }
}

const FileState* state_of(const TextSource& source) {
  return source.state ? &*source.state : nullptr;
}

}  // namespace

std::unique_ptr<FileDocuments> open_documents(const TextSource& source,
                                              const ReadOptions& options) {
  const std::string name = source.file.string();
  auto bytes = open_byte_source(source.file, state_of(source));
  if (source.format == TextFormat::kMessageCatalogue) {
    return std::make_unique<CatalogueDocuments>(*bytes, name);
  }
  return documents_of(open_text(std::move(bytes), options.encoding, name), source, options);
}

std::unique_ptr<FileDocuments> open_documents(const TextSource& source, const ReadOptions& options,
                                              const FileRange& range) {
  const std::string name = source.file.string();
  Text bytes = std::make_unique<PlainFile>(source.file, state_of(source), range);
  if (range.begin == 0) {
    return documents_of(open_text(std::move(bytes), options.encoding, name), source, options);
  }
  if (source.format != TextFormat::kTabSeparated) {
    return documents_of(std::move(bytes), source, options);
  }
  Records head(open_text(open_byte_source(source.file, state_of(source)), options.encoding, name));
  const auto column = find_column(head, options.text_column, name);
  return std::make_unique<TableDocuments>(std::move(bytes), options.text_column, column);
}

}  // namespace tupelo
